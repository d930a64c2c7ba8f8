/* A program that uses Vulkan itself, with a list of gk in between. They share the device, the queue and the memory.
 *
 * Particles fly and bounce. In each frame, gk moves them in steps; the device decides when the frame's time is over.
 * Then the program draws them into an image, by a graphics pipeline of its own that reads the same buffer. A timeline
 * semaphore orders both. At the end the program checks the picture and writes it.
 *
 *   glslangValidator -V --vn vertex_code -o vulkan_particles.vert.h vulkan_particles.vert
 *   glslangValidator -V --vn fragment_code -o vulkan_particles.frag.h vulkan_particles.frag
 *   cc -std=c11 -I. vulkan_particles.c -lgk -lvulkan -lpng -lm -o vulkan_particles && ./vulkan_particles picture.png */
#include <gk_kernel.h>
#include <gk_vulkan.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>
#include "vulkan_particles.frag.h"
#include "vulkan_particles.vert.h"

/* ---- gk's part --------------------------------------------------------------------------------------------------- */

GK_SOURCE(vulkan_particles)
GK_KERNEL(move, (inout(float, p), value(float, dt))) {
  float y = p[4 * i + 1], vx = p[4 * i + 2], vy = p[4 * i + 3] - dt;
  float x = p[4 * i] + vx * dt;
  y += vy * dt;
  if (y < -0.9f) y = -1.8f - y, vy = -0.8f * vy;
  if (x < -0.95f) x = -1.9f - x, vx = -vx;
  if (x > 0.95f) x = 1.9f - x, vx = -vx;
  p[4 * i] = x;
  p[4 * i + 1] = y;
  p[4 * i + 2] = vx;
  p[4 * i + 3] = vy;
}
GK_KERNEL(tick, (inout(int, steps), value(int, limit), out(int, more))) {
  steps[i] += 1;
  more[i] = steps[i] < limit ? 1 : 0;
}
GK_SOURCE_END

enum { PARTICLES = 256, FRAMES = 60, STEPS = 10, WIDTH = 480, HEIGHT = 480 };
#define DT 0.005f

enum { P = 1, COUNT, TIME_STEP, TAKEN, LIMIT, MORE };
static const gk_slot_desc slots[] = {GK_BUFFER(P, float), GK_SCALAR(COUNT, int), GK_SCALAR(TIME_STEP, float),
                                     GK_OWN(TAKEN, int, 1), GK_SCALAR(LIMIT, int), GK_OWN(MORE, int, 1)};
static const gk_task tasks[] = {
  GK_FILL(TAKEN, GK_ONE, 0),
  GK_DO_WHILE(MORE),
    GK_RUN(move, COUNT, P, TIME_STEP),
    GK_RUN(tick, GK_ONE, TAKEN, LIMIT, MORE),
  GK_END};
static const gk_list frame = GK_LIST(frame, tasks, slots);

/* ---- the program's own Vulkan ------------------------------------------------------------------------------------ */

static VkInstance instance;
static VkPhysicalDevice physical;
static VkDevice device;
static VkQueue queue;
static uint32_t family;
static VkSemaphore timeline;

static void must(bool right) {
  if (right) return;
  fprintf(stderr, "%s\n", gk_error());
  exit(1);
}

static void check(VkResult result) {
  if (result == VK_SUCCESS) return;
  fprintf(stderr, "Vulkan answers %d\n", (int)result);
  exit(1);
}

static void choose_device(void) {
  const VkApplicationInfo program = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = VK_API_VERSION_1_2};
  const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &program};
  check(vkCreateInstance(&info, NULL, &instance));
  uint32_t count = 1;
  (void)vkEnumeratePhysicalDevices(instance, &count, &physical); /* VK_INCOMPLETE if there are more */
  VkQueueFamilyProperties families[16];
  uint32_t family_count = 16;
  if (count) vkGetPhysicalDeviceQueueFamilyProperties(physical, &family_count, families);
  const VkQueueFlags both = VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT;
  while (count && family < family_count && (families[family].queueFlags & both) != both) ++family;
  if (count && family < family_count) return;
  fprintf(stderr, "no device draws and computes on one queue\n");
  exit(1);
}

/* Makes the device, and lets gk work on it. */
static gk_device *make_device(void) {
  const float priority = 1.0f;
  const VkDeviceQueueCreateInfo queues = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                          .queueFamilyIndex = family, .queueCount = 1, .pQueuePriorities = &priority};
  VkPhysicalDeviceVulkan12Features newer = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                            .bufferDeviceAddress = 1, .scalarBlockLayout = 1, .timelineSemaphore = 1,
                                            .storageBuffer8BitAccess = 1, .shaderInt8 = 1};
  const VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &newer,
                                              .features = {.shaderInt64 = 1}};
  const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = &features,
                                   .queueCreateInfoCount = 1, .pQueueCreateInfos = &queues};
  check(vkCreateDevice(physical, &info, NULL, &device));
  vkGetDeviceQueue(device, family, 0, &queue);
  const VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                          .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo semaphore = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type};
  check(vkCreateSemaphore(device, &semaphore, NULL, &timeline));
  /* This program submits only between gk_wait and gk_vulkan_launch, so it needs no lock. */
  const gk_vulkan_sharing sharing = {GK_VULKAN_SHARE, .instance = instance, .physical_device = physical,
                                     .device = device, .created = &info, .queue = queue, .queue_family = family,
                                     .get_instance_proc_addr = vkGetInstanceProcAddr};
  gk_device *shared;
  must(gk_device_open(&(gk_device_desc){.backend = "vulkan", .next = &sharing.base}, &shared) == GK_OK);
  return shared;
}

static VkDeviceMemory allocate(VkMemoryRequirements needs, VkFlags wanted, bool is_addressed) {
  VkPhysicalDeviceMemoryProperties kinds;
  vkGetPhysicalDeviceMemoryProperties(physical, &kinds);
  uint32_t kind = 0;
  while (kind < kinds.memoryTypeCount &&
         (!(needs.memoryTypeBits >> kind & 1) || (kinds.memoryTypes[kind].propertyFlags & wanted) != wanted))
    ++kind;
  const VkMemoryAllocateFlagsInfo flags = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                           .flags = is_addressed ? VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT : 0};
  const VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &flags,
                                     .allocationSize = needs.size, .memoryTypeIndex = kind};
  VkDeviceMemory memory;
  check(vkAllocateMemory(device, &info, NULL, &memory));
  return memory;
}

/* A buffer that the host sees. */
typedef struct buffer { VkBuffer buffer; VkDeviceMemory memory; void *host; size_t bytes; } buffer;

static buffer make_buffer(size_t bytes, VkBufferUsageFlags usage) {
  buffer made = {.bytes = bytes};
  const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes, .usage = usage};
  check(vkCreateBuffer(device, &info, NULL, &made.buffer));
  VkMemoryRequirements needs;
  vkGetBufferMemoryRequirements(device, made.buffer, &needs);
  made.memory = allocate(needs, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                         usage & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT);
  check(vkBindBufferMemory(device, made.buffer, made.memory, 0));
  check(vkMapMemory(device, made.memory, 0, VK_WHOLE_SIZE, 0, &made.host));
  return made;
}

static void drop_buffer(buffer b) {
  vkDestroyBuffer(device, b.buffer, NULL);
  vkFreeMemory(device, b.memory, NULL);
}

/* ---- drawing ----------------------------------------------------------------------------------------------------- */

static VkImage image;
static VkDeviceMemory image_memory;
static VkImageView view;
static VkRenderPass pass;
static VkFramebuffer target;
static VkPipelineLayout layout;
static VkPipeline pipeline;
static VkCommandPool pool;
static VkCommandBuffer clear, draw, read; /* recorded once */
static const VkImageSubresourceRange whole = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1};

static void make_image(void) {
  const VkImageCreateInfo info = {
    .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, .imageType = VK_IMAGE_TYPE_2D, .format = VK_FORMAT_R8G8B8A8_UNORM,
    .extent = {WIDTH, HEIGHT, 1}, .mipLevels = 1, .arrayLayers = 1, .samples = VK_SAMPLE_COUNT_1_BIT,
    .usage = VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT | VK_IMAGE_USAGE_TRANSFER_DST_BIT};
  check(vkCreateImage(device, &info, NULL, &image));
  VkMemoryRequirements needs;
  vkGetImageMemoryRequirements(device, image, &needs);
  image_memory = allocate(needs, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, false);
  check(vkBindImageMemory(device, image, image_memory, 0));
  const VkImageViewCreateInfo seen = {.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO, .image = image,
                                      .viewType = VK_IMAGE_VIEW_TYPE_2D, .format = info.format,
                                      .subresourceRange = whole};
  check(vkCreateImageView(device, &seen, NULL, &view));
}

/* Each frame is drawn over those before it. */
static void make_pass(void) {
  const VkAttachmentDescription colour = {
    .format = VK_FORMAT_R8G8B8A8_UNORM, .samples = VK_SAMPLE_COUNT_1_BIT, .loadOp = VK_ATTACHMENT_LOAD_OP_LOAD,
    .storeOp = VK_ATTACHMENT_STORE_OP_STORE, .stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE,
    .stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE, .initialLayout = VK_IMAGE_LAYOUT_GENERAL,
    .finalLayout = VK_IMAGE_LAYOUT_GENERAL};
  const VkAttachmentReference first = {0, VK_IMAGE_LAYOUT_GENERAL};
  const VkSubpassDescription subpass = {.pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS,
                                        .colorAttachmentCount = 1, .pColorAttachments = &first};
  const VkRenderPassCreateInfo info = {.sType = VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO, .attachmentCount = 1,
                                       .pAttachments = &colour, .subpassCount = 1, .pSubpasses = &subpass};
  check(vkCreateRenderPass(device, &info, NULL, &pass));
  const VkFramebufferCreateInfo frames = {.sType = VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO, .renderPass = pass,
                                          .attachmentCount = 1, .pAttachments = &view, .width = WIDTH,
                                          .height = HEIGHT, .layers = 1};
  check(vkCreateFramebuffer(device, &frames, NULL, &target));
}

static VkShaderModule make_shader(const uint32_t *code, size_t bytes) {
  const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes,
                                         .pCode = code};
  VkShaderModule module;
  check(vkCreateShaderModule(device, &info, NULL, &module));
  return module;
}

static void make_pipeline(void) {
  const VkShaderModule vertex = make_shader(vertex_code, sizeof vertex_code),
                       fragment = make_shader(fragment_code, sizeof fragment_code);
  const VkPipelineShaderStageCreateInfo stages[] = {
    {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_VERTEX_BIT,
     .module = vertex, .pName = "main"},
    {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_FRAGMENT_BIT,
     .module = fragment, .pName = "main"}};
  const VkVertexInputBindingDescription particle = {0, 4 * sizeof(float), VK_VERTEX_INPUT_RATE_VERTEX};
  const VkVertexInputAttributeDescription numbers = {0, 0, VK_FORMAT_R32G32B32A32_SFLOAT, 0};
  const VkPipelineVertexInputStateCreateInfo input = {
    .sType = VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO, .vertexBindingDescriptionCount = 1,
    .pVertexBindingDescriptions = &particle, .vertexAttributeDescriptionCount = 1,
    .pVertexAttributeDescriptions = &numbers};
  const VkPipelineInputAssemblyStateCreateInfo points = {
    .sType = VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO, .topology = VK_PRIMITIVE_TOPOLOGY_POINT_LIST};
  const VkViewport port = {0.0f, 0.0f, WIDTH, HEIGHT, 0.0f, 1.0f};
  const VkRect2D all = {{0, 0}, {WIDTH, HEIGHT}};
  const VkPipelineViewportStateCreateInfo ports = {.sType = VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO,
                                                   .viewportCount = 1, .pViewports = &port, .scissorCount = 1,
                                                   .pScissors = &all};
  const VkPipelineRasterizationStateCreateInfo raster = {
    .sType = VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO, .lineWidth = 1.0f};
  const VkPipelineMultisampleStateCreateInfo samples = {
    .sType = VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO, .rasterizationSamples = VK_SAMPLE_COUNT_1_BIT};
  const VkPipelineColorBlendAttachmentState opaque = {.colorWriteMask = 0xf};
  const VkPipelineColorBlendStateCreateInfo blend = {.sType = VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO,
                                                     .attachmentCount = 1, .pAttachments = &opaque};
  const VkPipelineLayoutCreateInfo nothing = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO};
  check(vkCreatePipelineLayout(device, &nothing, NULL, &layout));
  const VkGraphicsPipelineCreateInfo info = {
    .sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO, .stageCount = 2, .pStages = stages,
    .pVertexInputState = &input, .pInputAssemblyState = &points, .pViewportState = &ports,
    .pRasterizationState = &raster, .pMultisampleState = &samples, .pColorBlendState = &blend, .layout = layout,
    .renderPass = pass};
  check(vkCreateGraphicsPipelines(device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline));
  vkDestroyShaderModule(device, vertex, NULL);
  vkDestroyShaderModule(device, fragment, NULL);
}

static VkCommandBuffer begin_commands(void) {
  VkCommandBuffer commands;
  const VkCommandBufferAllocateInfo one = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = pool,
                                           .commandBufferCount = 1};
  check(vkAllocateCommandBuffers(device, &one, &commands));
  const VkCommandBufferBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  check(vkBeginCommandBuffer(commands, &begin));
  return commands;
}

/* The semaphore orders these with one another and with gk. */
static void record(buffer particles, buffer picture) {
  const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .queueFamilyIndex = family};
  check(vkCreateCommandPool(device, &info, NULL, &pool));
  const VkImageMemoryBarrier fresh = {
    .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER, .dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
    .oldLayout = VK_IMAGE_LAYOUT_UNDEFINED, .newLayout = VK_IMAGE_LAYOUT_GENERAL,
    .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED, .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED, .image = image,
    .subresourceRange = whole};
  const VkClearColorValue black = {{0.0f, 0.0f, 0.0f, 1.0f}};
  clear = begin_commands();
  vkCmdPipelineBarrier(clear, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 0, NULL, 1,
                       &fresh);
  vkCmdClearColorImage(clear, image, VK_IMAGE_LAYOUT_GENERAL, &black, 1, &whole);
  check(vkEndCommandBuffer(clear));
  draw = begin_commands();
  const VkRenderPassBeginInfo begin = {.sType = VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO, .renderPass = pass,
                                       .framebuffer = target, .renderArea = {{0, 0}, {WIDTH, HEIGHT}}};
  vkCmdBeginRenderPass(draw, &begin, VK_SUBPASS_CONTENTS_INLINE);
  vkCmdBindPipeline(draw, VK_PIPELINE_BIND_POINT_GRAPHICS, pipeline);
  vkCmdBindVertexBuffers(draw, 0, 1, &particles.buffer, &(VkDeviceSize){0});
  vkCmdDraw(draw, PARTICLES, 1, 0, 0);
  vkCmdEndRenderPass(draw);
  check(vkEndCommandBuffer(draw));
  read = begin_commands();
  const VkBufferImageCopy all = {.imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
                                 .imageExtent = {WIDTH, HEIGHT, 1}};
  vkCmdCopyImageToBuffer(read, image, VK_IMAGE_LAYOUT_GENERAL, picture.buffer, 1, &all);
  const VkMemoryBarrier to_host = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_HOST_READ_BIT};
  vkCmdPipelineBarrier(read, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0, NULL, 0,
                       NULL);
  check(vkEndCommandBuffer(read));
}

/* Waits for a value of the semaphore, does the commands, and signals the next value. */
static void submit(VkCommandBuffer commands, uint64_t *value) {
  const uint64_t wait = (*value)++;
  const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
  const VkTimelineSemaphoreSubmitInfo values = {.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
                                                .waitSemaphoreValueCount = 1, .pWaitSemaphoreValues = &wait,
                                                .signalSemaphoreValueCount = 1, .pSignalSemaphoreValues = value};
  const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = &values, .waitSemaphoreCount = 1,
                             .pWaitSemaphores = &timeline, .pWaitDstStageMask = &all, .commandBufferCount = 1,
                             .pCommandBuffers = &commands, .signalSemaphoreCount = 1, .pSignalSemaphores = &timeline};
  check(vkQueueSubmit(queue, 1, &info, VK_NULL_HANDLE));
}

static void drop_drawing(void) {
  vkDestroyCommandPool(device, pool, NULL);
  vkDestroyPipeline(device, pipeline, NULL);
  vkDestroyPipelineLayout(device, layout, NULL);
  vkDestroyFramebuffer(device, target, NULL);
  vkDestroyRenderPass(device, pass, NULL);
  vkDestroyImageView(device, view, NULL);
  vkDestroyImage(device, image, NULL);
  vkFreeMemory(device, image_memory, NULL);
}

/* ---- what the picture must show ---------------------------------------------------------------------------------- */

static bool may_be_lit[HEIGHT][WIDTH];

/* As kernel `move`, on the host. */
static void move_on_host(float *p) {
  p[3] -= DT;
  p[0] += p[2] * DT;
  p[1] += p[3] * DT;
  if (p[1] < -0.9f) p[1] = -1.8f - p[1], p[3] *= -0.8f;
  if (p[0] < -0.95f) p[0] = -1.9f - p[0], p[2] = -p[2];
  if (p[0] > 0.95f) p[0] = 1.9f - p[0], p[2] = -p[2];
}

static bool is_lit(const unsigned char *picture, int x, int y) { return picture[4 * (y * WIDTH + x) + 2] > 0; }

/* Rounding may move a point to the next pixel. */
static int count_missing(float *places, const unsigned char *picture) {
  int missing = 0;
  for (int f = 0; f < FRAMES; ++f)
    for (int k = 0; k < PARTICLES; ++k) {
      float *p = places + 4 * k;
      bool is_there = false;
      for (int s = 0; s < STEPS; ++s) move_on_host(p);
      const int x = (int)((p[0] + 1.0f) / 2.0f * WIDTH), y = (int)((1.0f - p[1]) / 2.0f * HEIGHT);
      for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
          if (x + dx < 0 || x + dx >= WIDTH || y + dy < 0 || y + dy >= HEIGHT) continue;
          may_be_lit[y + dy][x + dx] = true;
          is_there = is_there || is_lit(picture, x + dx, y + dy);
        }
      missing += !is_there;
    }
  return missing;
}

static int count_lit(const unsigned char *picture, int *wrong) {
  int lit = 0;
  for (int y = 0; y < HEIGHT; ++y)
    for (int x = 0; x < WIDTH; ++x) {
      lit += is_lit(picture, x, y);
      *wrong += is_lit(picture, x, y) && !may_be_lit[y][x];
    }
  return lit;
}

static void place_particles(float *p) {
  for (int k = 0; k < PARTICLES; ++k) {
    const float angle = 6.2831853f * (float)k / PARTICLES, speed = 0.4f + 0.4f * (float)(k % 8) / 8.0f;
    p[4 * k] = 0.1f * cosf(angle);
    p[4 * k + 1] = 0.3f + 0.1f * sinf(angle);
    p[4 * k + 2] = speed * cosf(angle);
    p[4 * k + 3] = speed * sinf(angle);
  }
}

int main(int argc, char **argv) {
  static float places[4 * PARTICLES];
  choose_device();
  gk_device *shared = make_device();
  const buffer particles = make_buffer(sizeof places, VK_BUFFER_USAGE_VERTEX_BUFFER_BIT |
      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT |
      VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT),
      picture = make_buffer(4 * WIDTH * HEIGHT, VK_BUFFER_USAGE_TRANSFER_DST_BIT);
  make_image();
  make_pass();
  make_pipeline();
  record(particles, picture);
  place_particles(places);
  memcpy(particles.host, places, sizeof places);

  gk_graph *graph;
  void *p;
  const gk_vulkan_memory memory = {.buffer = particles.buffer, .bytes = particles.bytes, .host = particles.host};
  must(gk_vulkan_add_memory(shared, &memory, &p) == GK_OK);
  must(gk_graph_create(shared, &frame, 0, &graph) == GK_OK);
  must(gk_bind(graph, P, p) == GK_OK && gk_bind_int(graph, COUNT, PARTICLES) == GK_OK);
  must(gk_bind_float(graph, TIME_STEP, DT) == GK_OK && gk_bind_int(graph, LIMIT, STEPS) == GK_OK);

  uint64_t value = 0;
  submit(clear, &value);
  for (int f = 0; f < FRAMES; ++f) {
    const gk_vulkan_point drawn = {timeline, value}, moved = {timeline, ++value};
    must(gk_vulkan_launch(graph, 0, &drawn, &moved) == GK_OK);
    must(gk_wait(graph, NULL) == GK_OK);
    submit(draw, &value);
  }
  submit(read, &value);
  check(vkWaitSemaphores(device, &(VkSemaphoreWaitInfo){.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                                        .semaphoreCount = 1, .pSemaphores = &timeline,
                                                        .pValues = &value}, UINT64_MAX));

  int wrong = 0;
  const int missing = count_missing(places, picture.host), lit = count_lit(picture.host, &wrong);
  printf("%d frames of %d particles: %d pixels are lit, %d of them wrongly, %d are missing\n", FRAMES, PARTICLES, lit,
         wrong, missing);
  png_image file = {.version = PNG_IMAGE_VERSION, .width = WIDTH, .height = HEIGHT, .format = PNG_FORMAT_RGBA};
  const bool is_written = argc < 2 || png_image_write_to_file(&file, argv[1], 0, picture.host, 0, NULL);
  if (!is_written) fprintf(stderr, "%s: %s\n", argv[1], file.message);

  gk_graph_destroy(graph);
  gk_device_close(shared);
  drop_drawing();
  drop_buffer(picture);
  drop_buffer(particles);
  vkDestroySemaphore(device, timeline, NULL);
  vkDestroyDevice(device, NULL);
  vkDestroyInstance(instance, NULL);
  return wrong || missing || lit < PARTICLES || !is_written;
}
