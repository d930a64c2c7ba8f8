#include <stdio.h>

int run_from_c(void);

/* 64 ones; the first is tripled, the second raised by the call; then three more each. */
int main(void) {
  int sum = run_from_c();
  printf("%d\n", sum);
  return sum == 64 + 2 + 10 + 3 * 64 ? 0 : 1;
}
