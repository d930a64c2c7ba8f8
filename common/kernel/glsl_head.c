/* The text before a kernel's body in GLSL: types for its memory and its record, push constants, main, and the head of
 * the function that executes one item. */
#include "kernel/glsl_head.h"
#include <string.h>

/* Words that GLSL reserves and C doesn't. In a kernel they are the user's own names, so they get a suffix. */
static const char glsl_words[] =
    " active attribute buffer bvec2 bvec3 bvec4 cast centroid class coherent common demote discard dmat2 dmat3"
    " dmat4 dvec2 dvec3 dvec4 external filter fixed flat half highp hvec2 hvec3 hvec4 in inout input interface"
    " invariant ivec2 ivec3 ivec4 layout lowp mat2 mat3 mat4 mediump namespace noinline noperspective out output"
    " partition patch precise precision public readonly resource sample sampler shared smooth subroutine superp"
    " template texture this uniform using uvec2 uvec3 uvec4 varying vec2 vec3 vec4 writeonly abs all any barrier"
    " clamp cross degrees determinant distance dot equal faceforward fract greaterThan inverse length lessThan"
    " main max min mix mod normalize not notEqual outerProduct radians reflect refract sign smoothstep step"
    " transpose ";

const char *gki_glsl_suffix(gki_token word) { return gki_token_in(word, glsl_words) ? "_" : ""; }

static const char *suffix(const char *name) { return gki_glsl_suffix(gki_whole_token(name)); }

bool gki_glsl_is_double(const gk_param *p) { return strcmp(p->element, "double") == 0; }

/* A type for each parameter that is memory, and for each struct by value, which is also read from memory. */
static void add_types(gki_text *out, const gk_param *params, const gk_param *last) {
  for (const gk_param *p = params; p < last; ++p) {
    const char *type = p->element, *type_suffix = suffix(type);
    bool value = p->access == GK_ACCESS_VALUE, reads = value || p->access == GK_ACCESS_IN;
    if (value && p->type != GK_BYTES) continue;
    gki_text_add(out, "layout(buffer_reference, scalar, buffer_reference_align = %u) ", (unsigned)p->element_alignment);
    gki_text_add(out, "%sbuffer gki_type_%s { %s%s data%s; }; ", reads ? "readonly " : "", p->name, type, type_suffix,
                 value ? "" : "[]");
    if (p->access == GK_ACCESS_SUM) gki_text_add(out, "%s %s%s[1]; ", type, p->name, suffix(p->name));
  }
}

/* The record of a task (gki_record of lower/task.h), and the push constants (gki_task). */
static void add_record(gki_text *out, const gk_param *params, const gk_param *last) {
  const unsigned count = (unsigned)(last - params);
  gki_text_add(out, "layout(buffer_reference, scalar, buffer_reference_align = 16) readonly buffer gki_record { "
                    "uvec4 head; ");
  for (const gk_param *p = params; p < last; ++p) {
    bool number = p->access == GK_ACCESS_VALUE && p->type != GK_BYTES;
    gki_text_add(out, "layout(offset = %u) %s%s gki_at_%s; ", 16 + 8 * (unsigned)(p - params),
                 number ? "" : "gki_type_", number ? p->element : p->name, p->name);
  }
  gki_text_add(out, "layout(offset = %u) uvec2 extents[3]; }; ", 16 + (count + 1) / 2 * 16);
  gki_text_add(out, "layout(push_constant, scalar) uniform gki_push { gki_record record; uvec2 guard; gki_control "
                    "control; } gki; ");
}

static void add_item_head(gki_text *out, const gk_param *params, const gk_param *last, uint32_t dimensions) {
  gki_text_add(out, "void gki_item(");
  for (const gk_param *p = params; p < last; ++p) {
    const char *type = p->element;
    if (p->access == GK_ACCESS_VALUE)
      gki_text_add(out, "const %s%s %s%s, ", type, suffix(type), p->name, suffix(p->name));
    else if (p->access != GK_ACCESS_SUM)
      gki_text_add(out, "const gki_type_%s gki_at_%s, ", p->name, p->name);
  }
  gki_text_add(out, "const int i%s%s)", dimensions > 1 ? ", const int j" : "", dimensions > 2 ? ", const int k" : "");
}

/* The arguments i, j and k of an item, as expressions in its linear number. */
static const char *item_numbers(uint32_t dimensions) {
  if (dimensions > 2)
    return "int(gki_n % gki_head.y), int(gki_n / gki_head.y % gki_head.z), int(gki_n / gki_head.y / gki_head.z)";
  return dimensions > 1 ? "int(gki_n % gki_head.y), int(gki_n / gki_head.y)" : "int(gki_n)";
}

/* The loads of the record come before the test of the guard, so that a task waits for memory once. */
static void add_main(gki_text *out, const gk_param *params, const gk_param *last, uint32_t dimensions) {
  gki_text_add(out, "void main() { uvec4 gki_head = gki.record.head; ");
  for (const gk_param *p = params; p < last; ++p) {
    const bool value = p->access == GK_ACCESS_VALUE, by_value = value && p->type == GK_BYTES;
    if (p->access == GK_ACCESS_SUM) gki_text_add(out, "%s%s[0] = %s(0); ", p->name, suffix(p->name), p->element);
    gki_text_add(out, "%s%s%s gki_my_%s = gki.record.gki_at_%s%s; ", value ? p->element : "gki_type_",
                 value ? suffix(p->element) : "", value ? "" : p->name, p->name, p->name, by_value ? ".data" : "");
  }
  gki_text_add(out, "if (!gki_is_unchecked && gki_is_skipped(gki.guard, gki.control)) return; "
                    "uint gki_count = gki_head.x; "
                    "if (!gki_is_unchecked && gki_count >= GKI_UNCOUNTED) { "
                    "uvec2 gki_extents[3] = uvec2[3](uvec2(0), uvec2(0), uvec2(0)); "
                    "if (gki_count > GKI_UNCOUNTED) gki_extents = gki.record.extents; "
                    "gki_count = gki_count_items(gki_head, gki_extents, gki.control); } if (gki_count == 0u) return; "
                    "uint gki_step = gl_NumWorkGroups.x * gl_WorkGroupSize.x; "
                    "uint gki_n = gl_GlobalInvocationID.x; if (gki_n < gki_count) do gki_item(");
  for (const gk_param *p = params; p < last; ++p)
    if (p->access != GK_ACCESS_SUM) gki_text_add(out, "gki_my_%s, ", p->name);
  gki_text_add(out, "%s); while ((gki_n += gki_step) < gki_count); ", item_numbers(dimensions));
  for (const gk_param *p = params; p < last; ++p) {
    if (p->access != GK_ACCESS_SUM) continue;
    gki_text_add(out, "%s%s[0] = subgroupAdd(%s%s[0]); ", p->name, suffix(p->name), p->name, suffix(p->name));
    gki_text_add(out, "if (subgroupElect()) ");
    gki_text_add(out, gki_glsl_is_double(p) ? "gki_add_double(uvec2(gki_my_%s), 0, "
                                            : "atomicAdd(gki_my_%s.data[0], ", p->name);
    gki_text_add(out, "%s%s[0]); ", p->name, suffix(p->name));
  }
  gki_text_add(out, "} ");
}

void gki_glsl_head(gki_text *out, const gk_kernel *kernel) {
  const gk_param *params = kernel->params, *last = params + kernel->param_count;
  bool adds_doubles = false, loads_doubles = false;
  for (const gk_param *p = params; p < last; ++p) {
    loads_doubles |= p->access == GK_ACCESS_ATOMIC && gki_glsl_is_double(p);
    adds_doubles |= p->access == GK_ACCESS_SUM && gki_glsl_is_double(p);
  }
  add_types(out, params, last);
  if (adds_doubles || loads_doubles) gki_text_add(out, "GKI_ADD_DOUBLE ");
  if (loads_doubles) gki_text_add(out, "GKI_LOAD_DOUBLE ");
  add_record(out, params, last);
  add_item_head(out, params, last, kernel->dimensions);
  gki_text_add(out, "; ");
  add_main(out, params, last, kernel->dimensions);
  add_item_head(out, params, last, kernel->dimensions);
}
