/* LLVM's OpenMP runtime keeps a block of memory for each thread that ever called it, which is no leak of ours. To be
 * included once in a program that uses it. */
#ifndef LIBOMP_LEAKS_H
#define LIBOMP_LEAKS_H
/* Called by LeakSanitizer. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libomp.so"; }
#endif
