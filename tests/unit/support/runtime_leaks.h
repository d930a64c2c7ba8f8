/* LLVM's OpenMP runtime and AMD's HIP runtime keep a block of memory for each thread that ever called them, which is no
 * leak of ours. To be included once in a program in which threads end that called one of them. */
#ifndef RUNTIME_LEAKS_H
#define RUNTIME_LEAKS_H
/* Called by LeakSanitizer, from its library if that is a shared one. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libomp.so\nleak:libamdhip64.so"; }
#endif
