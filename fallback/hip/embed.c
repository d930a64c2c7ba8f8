#include "hip/compile.h"
#include <stdio.h>
#include <string.h>

enum { GPU_BYTES = 32 };
typedef struct options { const char *gpus; /* "gfx90a,gfx1100"; NULL: the usual ones that hipRTC knows */ } options;

static const char usual[] = "gfx90a,gfx942,gfx1030,gfx1100,gfx1201";
static const char help[] =
    "  --offload-arch gfx90a,gfx1100   for these GPUs; the default: those of gfx90a,gfx942,gfx1030,gfx1100,gfx1201\n"
    "                     that hipRTC knows\n";

/* Takes a name from the list. Returns whether it is one of a GPU, without features. */
static bool next_gpu(const char **list, char gpu[GPU_BYTES]) {
  const size_t length = strcspn(*list, ",");
  snprintf(gpu, GPU_BYTES, "%.*s", (int)(length < GPU_BYTES ? length : 0), *list);
  *list += length + ((*list)[length] == ',');
  return gki_hip_target(gpu) && !strchr(gpu, ':');
}

static int read_option(void *to, char **words) {
  if (strcmp(words[0], "--offload-arch") != 0 || !words[1]) return 0;
  const char *rest = ((options *)to)->gpus = words[1];
  char gpu[GPU_BYTES];
  bool is_right;
  do is_right = next_gpu(&rest, gpu);
  while (is_right && *rest);
  if (is_right) return 2;
  (void)gk_fail(GK_ERROR_INVALID, "--offload-arch is followed by names of GPUs with commas between them, as "
                "gfx90a,gfx1100");
  return -1;
}

static gk_result compile_for(const gki_hip_driver *driver, const char *gpu, const gki_unit *text, gki_embed_take *take,
                             void *user) {
  gki_compiled code;
  const gk_result result = gki_hip_compile(driver, gpu, text, &code);
  if (result != GK_OK) return result;
  const gk_image image = {.target = gki_hip_target(gpu), .kind = GK_IMAGE_AMD, .made_by = (uint32_t)driver->version,
                          .size = code.size};
  gk_host_free(code.log);
  return take(user, &image, code.bytes);
}

static gk_result compile(const void *from, const gki_unit *text, gki_embed_take *take, void *user) {
  const options *o = from;
  const gki_hip_driver *driver;
  gk_result result = gki_hip_driver_load(&driver);
  for (const char *rest = o->gpus ? o->gpus : usual; result == GK_OK && *rest;) {
    char gpu[GPU_BYTES];
    (void)next_gpu(&rest, gpu);
    if (!o->gpus && !driver->no_compiler[0] && !gki_hip_knows(driver->version, gpu))
      gk_log(GK_LOG_WARN, "left out: hipRTC of %s doesn't know %s", driver->name, gpu);
    else result = compile_for(driver, gpu, text, take, user);
  }
  return result;
}

const gki_embedder gki_hip_embedder = {.language = "hip", .help = help, .option_bytes = sizeof(options),
                                       .read_option = read_option, .compile = compile};
