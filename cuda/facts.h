/* The facts about CUDA that gk-info prints: its libraries, and the result of probing a device. */
#ifndef GKI_CUDA_FACTS_H
#define GKI_CUDA_FACTS_H
#include "gk_backend.h"

extern const gk_fact_source gki_cuda_facts;
#endif
