/* Pipelines of the driver are kept on disk, and refused if they are damaged or may be another user's. Skipped where
 * there is no Vulkan device, or where gk was built without xxHash or without a compiler of GLSL. */
#include "unit/support/vulkan_device.h"
#include "gk_info.h"
#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

extern const unsigned char gki_vulkan_copy[];
static char folder[] = "/tmp/gk_pipelines_XXXXXX", kept[sizeof folder + 300];

/* @return the number of files in the folder; `kept` is one of them */
static int count_files(void) {
  int count = 0;
  DIR *all = opendir(folder);
  assert_non_null(all);
  for (struct dirent *one; (one = readdir(all));) {
    if (one->d_name[0] == '.') continue;
    snprintf(kept, sizeof kept, "%s/%.290s", folder, one->d_name);
    ++count;
  }
  closedir(all);
  return count;
}

static long size_of_kept(void) {
  struct stat file;
  assert_int_equal(stat(kept, &file), 0);
  return (long)file.st_size;
}

enum { X = 1 };
static const gk_slot_desc slots[] = {GK_OWN(X, int, 1)};
static const gk_task tasks[] = {GK_FILL(X, GK_ONE, 1)};
static const gk_list fills = GK_LIST(fills, tasks, slots);

static void open_and_close(void) {
  gk_device *device = open_vulkan();
  gk_graph *graph;
  assert_ok(gk_graph_create(device, &fills, 0, &graph));
  gk_graph_destroy(graph);
  gk_device_close(device);
}

static void drop_folder(void) {
  while (count_files() > 0) assert_int_equal(unlink(kept), 0);
  assert_int_equal(rmdir(folder), 0);
}

TEST(pipelines_are_kept) {
  if (gki_vulkan_copy[0] == '#') skip(); /* the compiled text of gk's shaders is kept there, too */
  assert_non_null(mkdtemp(folder));
  setenv("GK_CACHE", folder, 1);
  open_and_close();
  if (count_files() == 0) {
    drop_folder();
    skip(); /* without xxHash */
  }
  assert_int_equal(count_files(), 1);
  const long bytes = size_of_kept();
  open_and_close();
  assert_int_equal(count_files(), 1);
  assert_int_equal(truncate(kept, bytes - 1), 0);
  open_and_close();
  assert_int_equal(count_files(), 1);
  assert_int_equal(size_of_kept(), bytes);
  assert_int_equal(unlink(kept), 0);
  assert_int_equal(chmod(folder, 0777), 0); /* another user could write there */
  open_and_close();
  assert_int_equal(count_files(), 0);
  drop_folder();
}

int main(void) { return run_all_tests(); }
