// A user's C++ file: the lists as they stand, checked from here; the kernels come from C.
#include "../lists.h"
#include <gk_backend.h>
#include <cstdio>

int main() {
  if (gk_check(&everything, nullptr, gk_print, nullptr) != GK_OK) return 1;
  gk_task one = {};
  one = gk_task GK_RUN(add_one, COUNT, DATA);
  int sum = run_from_c();
  std::printf("%d\n", sum);
  return one.kernel == &add_one && sum == 64 + 2 + 10 + 3 * 64 ? 0 : 1;
}
