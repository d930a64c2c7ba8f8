/* What the host does with the graph of a story: launches, and changes of its slots in between. */
#include "story.h"

void story_write_deeds(story *s, uint64_t seed) {
  static const deed_kind kinds[] = {DEED_POKE, DEED_POKE, DEED_POKE, DEED_BIND, DEED_RESIZE, DEED_NUMBER, DEED_NUMBER,
                                    DEED_STRUCT};
  s->deed_count = 0;
  for (uint32_t left = 4 + pick(&seed, 8); left; --left) {
    deed *d = &s->deeds[s->deed_count++];
    *d = (deed){.kind = kinds[pick(&seed, GK_COUNT(kinds))], .slot = pick(&seed, 1u << 20), .at = pick(&seed, FLAGS),
                .count = 1 + pick(&seed, FLAGS), .value = (int32_t)pick(&seed, 1u << 20)};
    if (s->deed_count > 1 && pick(&seed, 2) == 0) continue;
    d->kind = DEED_LAUNCH;
    uint32_t from = pick(&seed, 8);
    d->label = from < 2 ? 0 : from < 5 ? RESUME : 1 + (int32_t)pick(&seed, 1u << 20);
    d->waits = pick(&seed, 3) == 0;
    d->polls = pick(&seed, 4) == 0;
    if (s->bits & GK_CANCELLABLE && pick(&seed, 2) == 0 && story_cancels()) {
      d->cancel = 1 + pick(&seed, 4);
      d->queued = pick(&seed, 3);
    }
  }
}
