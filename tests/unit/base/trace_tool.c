#include "trace_tool.h"
#include <stdio.h>

/* What LLVM's OpenMP runtime asks of a tool that it loads. */
void *ompt_start_tool(unsigned version, const char *runtime);
__attribute__((visibility("default"))) void *ompt_start_tool(unsigned version, const char *runtime) {
  (void)version, (void)runtime;
  printf("an OpenMP tool;");
  return NULL;
}

#ifdef GK_NVTX
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 1 << 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char texts[TRACE_TOOL_THREADS][TEXT], wrong[200], domain[64];
static unsigned epoch = 1, threads, open_ranges; /* threads: that said something since the last forget */
static _Thread_local unsigned depth, seen, number; /* of this thread: its open ranges, in which epoch it has a number */

static void complain(const char *what) {
  if (!wrong[0]) snprintf(wrong, sizeof wrong, "%s", what);
}

__attribute__((format(printf, 1, 2))) static void write_down(const char *format, ...) {
  if (seen != epoch) {
    seen = epoch;
    number = threads < TRACE_TOOL_THREADS ? threads++ : threads;
  }
  if (number >= TRACE_TOOL_THREADS) {
    complain("too many threads");
    return;
  }
  char *text = texts[number];
  size_t used = strlen(text);
  if (used > TEXT / 2) { /* an endless loop reports the same again and again: the last reports are kept */
    memmove(text, text + used - TEXT / 4, TEXT / 4 + 1);
    used = TEXT / 4;
  }
  va_list args;
  va_start(args, format);
  const int length = vsnprintf(text + used, TEXT - used, format, args);
  va_end(args);
  if (length < 0 || (size_t)length >= TEXT - used) complain("too long a name");
}

static void judge(nvtxDomainHandle_t given, const nvtxEventAttributes_t *event) {
  if ((const char *)given != domain) complain("another domain's");
  if (event->version != NVTX_VERSION || event->size != sizeof *event) complain("event of another version");
  if (event->messageType != NVTX_MESSAGE_TYPE_ASCII || !event->message.ascii[0]) complain("a range without a name");
  if (event->payloadType != NVTX_PAYLOAD_UNKNOWN && event->payloadType != NVTX_PAYLOAD_TYPE_UNSIGNED_INT64)
    complain("a number of another type");
}

static void name(const nvtxEventAttributes_t *event, const char *before, const char *behind) {
  write_down("%s%s", before, event->message.ascii);
  if (event->payloadType != NVTX_PAYLOAD_UNKNOWN) write_down("[%llu]", (unsigned long long)event->payload.ullValue);
  write_down("%s", behind);
}

static nvtxDomainHandle_t create(const char *wanted) {
  pthread_mutex_lock(&lock);
  if (domain[0]) complain("a second domain");
  snprintf(domain, sizeof domain, "%s", wanted);
  pthread_mutex_unlock(&lock);
  return (nvtxDomainHandle_t)(void *)domain;
}

static int push(nvtxDomainHandle_t given, const nvtxEventAttributes_t *event) {
  pthread_mutex_lock(&lock);
  judge(given, event);
  name(event, "", "{");
  ++open_ranges;
  pthread_mutex_unlock(&lock);
  return (int)depth++;
}

static int pop(nvtxDomainHandle_t given) {
  pthread_mutex_lock(&lock);
  if ((const char *)given != domain) complain("the end of another domain's");
  if (!depth) complain("an end without a beginning");
  else --depth, --open_ranges;
  write_down("}");
  pthread_mutex_unlock(&lock);
  return (int)depth;
}

static void mark(nvtxDomainHandle_t given, const nvtxEventAttributes_t *event) {
  pthread_mutex_lock(&lock);
  judge(given, event);
  name(event, "!", ";");
  pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get) {
  const char *way = getenv("TRACE_TOOL");
  const NvtxExportTableCallbacks *callbacks = get(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table;
  unsigned size;
  if (way && strcmp(way, "deaf") == 0) return 1;
  if ((way && strcmp(way, "refuses") == 0) ||
      !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) || size < NVTX_CBID_CORE2_SIZE)
    return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create;
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
  *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
  *table[NVTX_CBID_CORE2_DomainMarkEx] = (NvtxFunctionPointer)mark;
  return 1;
}

static void forget(void) {
  pthread_mutex_lock(&lock);
  memset(texts, 0, sizeof texts);
  threads = 0;
  ++epoch;
  pthread_mutex_unlock(&lock);
}

static const char *said(unsigned thread) { return thread < TRACE_TOOL_THREADS ? texts[thread] : ""; }

static unsigned count_open(void) {
  pthread_mutex_lock(&lock);
  const unsigned count = open_ranges;
  pthread_mutex_unlock(&lock);
  return count;
}

static const char *first_wrong(void) { return wrong; }
static const char *domain_asked_for(void) { return domain; }

extern const trace_tool trace_tool_control;
__attribute__((visibility("default"))) const trace_tool trace_tool_control = {forget, said, count_open, first_wrong,
                                                                              domain_asked_for};
#else
extern const int trace_tool_without_nvtx;
const int trace_tool_without_nvtx = 1;
#endif
