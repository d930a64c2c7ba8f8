/* Arbitrary bytes as an OBJ file: read, and made into a body as the demo does it. The result is in range and
 * finite. */
#include "../../docs/examples/softbody/mesh.h"
#include "../../docs/examples/softbody/obj.h"
#include "fuzz.h"

enum { LARGEST = 1 << 12 /* vertices: beyond it, building takes long */ };

static bool is_finite(double x) { return x - x == 0.0; }

static void check_file(const obj *file) {
  REQUIRE(file->vertex_count > 0 && file->triangle_count > 0);
  for (int k = 0; k < file->vertex_count; ++k)
    REQUIRE(is_finite(file->vertices[k].x) && is_finite(file->vertices[k].y) && is_finite(file->vertices[k].z));
  for (int k = 0; k < file->triangle_count; ++k)
    for (int c = 0; c < 3; ++c)
      REQUIRE(file->triangles[k][c] >= 0 && file->triangles[k][c] < file->vertex_count);
}

static void check_first(const int *first, int count, int total) {
  REQUIRE(first[0] == 0 && first[count] == total);
  for (int k = 0; k < count; ++k) REQUIRE(first[k] <= first[k + 1]);
}

static void check_body(const mesh *body) {
  const int count = body->vertex_count;
  REQUIRE(count > 2 && body->triangle_count > 0 && is_finite(body->edge) && body->edge > 0.0);
  for (int k = 0; k < count; ++k) {
    const v3 at = body->rest[k];
    REQUIRE(fabs(at.x) <= 1.0 && at.y >= 0.0 && at.y <= 1.000001 && fabs(at.z) <= 1.0);
    REQUIRE(is_finite(body->mass[k]) && body->mass[k] > 0.0);
  }
  for (int k = 0; k < body->triangle_count; ++k)
    for (int c = 0; c < 3; ++c) REQUIRE(body->triangles[k][c] >= 0 && body->triangles[k][c] < count);
  check_first(body->spring_first, count, body->spring_count);
  for (int k = 0; k < body->spring_count; ++k) {
    REQUIRE(body->spring_other[k] >= 0 && body->spring_other[k] < count);
    REQUIRE(is_finite(body->springs[k].rest) && body->springs[k].rest > 0.0 && is_finite(body->springs[k].stiffness));
  }
  check_first(body->share_first, count, body->share_count);
  for (int k = 0; k < body->share_count; ++k) {
    REQUIRE(body->share_hinge[k] >= 0 && body->share_hinge[k] < body->hinge_count);
    REQUIRE(is_finite(body->share_weight[k]));
  }
  for (int k = 0; k < body->hinge_count; ++k)
    REQUIRE(is_finite(body->hinges[k].rest) && is_finite(body->hinges[k].stiffness));
}

int LLVMFuzzerInitialize(int *argc, char ***argv) { return (void)argc, (void)argv, 0; }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const material stuff = {0.3, 60.0, 1e-4};
  obj file;
  mesh body;
  complaint why = {""};
  char *text = malloc(size + 1); /* ends where its memory ends */
  REQUIRE(text);
  if (size) memcpy(text, data, size);
  text[size] = 0;
  bool good = obj_parse("a.obj", text, size, &file, &why);
  free(text);
  if (!good) {
    REQUIRE(*why.text && !file.vertices && !file.triangles);
    return 0;
  }
  check_file(&file);
  if (file.vertex_count <= LARGEST) {
    if (mesh_build("a.obj", &file, &stuff, &body, &why)) {
      check_body(&body);
      const double reach = mesh_reach(&body, 0.5 * body.edge);
      REQUIRE(reach > 0.0 && reach <= body.edge);
      mesh_free(&body);
    } else REQUIRE(*why.text && !body.rest && !body.triangles);
  }
  obj_free(&file);
  return 0;
}
