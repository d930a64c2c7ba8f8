/* obj_test.c - what the soft body makes of OBJ files: the good, the odd and the hostile. */
#include "docs/examples/softbody/mesh.h"
#include "docs/examples/softbody/obj.h"
#include "unit/support/test.h"

#define FOUR "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\n"
#define BOX FOUR "f 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n"

/* Parses a copy that ends where its memory ends, so that a look too far is seen. */
static bool parse(const char *text, size_t size, obj *file, complaint *why) {
  char *copy = malloc(size + 1);
  assert_non_null(copy);
  memcpy(copy, text, size);
  copy[size] = 0;
  bool good = obj_parse("m.obj", copy, size, file, why);
  free(copy);
  return good;
}

TEST(reads_what_is_allowed) {
  static const struct { const char *text; int vertices, triangles, corner; } good[] = {
    {BOX, 4, 4, 3},
    {FOUR "f 1 2 3 4", 4, 2, 3},                                   /* a polygon, no line end behind it */
    {FOUR "f 1/1 2/2 3/3\nf 1/1/1 2/2/2 4/3/3\nf 1//1 2//2 4//3\n", 4, 3, 3},
    {FOUR "f -4 -3 -1\n", 4, 1, 3},
    {"v 0 0 0\nv 1 0 0\nv 0 1 0\nf -3 -2 -1\nv 5 5 5\n", 4, 1, 2}, /* backwards from where the face stands */
    {"f 1 2 3\nv 0 0 0\nv 1 0 0\nv 0 1 0\n", 3, 1, 2},             /* the vertices may come later */
    {"\xef\xbb\xbfv 0 0 0\r\nv 1 0 0\r\nv 0 1 0\r\nf 1 2 3\r\n", 3, 1, 2},
    {"v 0 0 0\rv 1 0 0\rv 0 1 0\rf 1 2 3\r", 3, 1, 2},
    {"# c\n\n  \t\nv 0 0 0 # here\nv 1 0 0 1.0\nv 0 1 0 0.5 0.5 0.5\nvt 0 0\nvn 0 0 1\no x\ng\ns off\nusemtl C:\\a\\b\n"
     "mtllib \xc3\xa4.mtl\nl 1 2\nf 1 2 3#\n", 3, 1, 2},
    {"v 0 \\\n0 0\nv 1 0 0\nv 0 1 0\nf 1 \\\r\n2 3\n", 3, 1, 2},   /* lines that go on */
    {"v 1e-300 0 0\nv +1.5E+2 -.5 1.\nv 0 1 0x10\nf 1 2 3\n", 3, 1, 2},
  };
  for (size_t k = 0; k < GK_COUNT(good); ++k) {
    obj file;
    complaint why = {""};
    if (!parse(good[k].text, strlen(good[k].text), &file, &why)) fail_msg("row %zu: %s", k, why.text);
    if (file.vertex_count != good[k].vertices || file.triangle_count != good[k].triangles)
      fail_msg("row %zu: %d vertices, %d triangles", k, file.vertex_count, file.triangle_count);
    assert_int_equal(file.triangles[file.triangle_count - 1][2], good[k].corner);
    obj_free(&file);
  }
}

TEST(refuses_the_rest_with_its_line) {
  static const struct { const char *text, *place, *sentence; } bad[] = {
      {"\n\n# nothing\n", "m.obj:3: ", "without a vertex"}, {FOUR, "m.obj:4: ", "without a face"},
      {FOUR "f 1 2 3\nf 1 2\n", "m.obj:6: ", "three corners"},
      {FOUR "f 1 2 5\n", "m.obj:5: ", "asks for vertex 5, the file has 4"},
      {FOUR "f 1 2 0\n", "m.obj:5: ", "count from 1"}, {FOUR "f 1 2 -5\n", "m.obj:5: \"-5\"", "before the first"},
      {FOUR "f 1 2 2147483647\n", "m.obj:5: ", "asks for vertex 2147483647"},
      {FOUR "f 1 2 2147483648\n", "m.obj:5: ", "count from 1"},
      {FOUR "f 1 2 -9223372036854775808\n", "m.obj:5: ", "count from 1"},
      {FOUR "f 1 2 99999999999999999999999\n", "m.obj:5: \"99999999999999999999999\"", "count from 1"},
      {FOUR "f 1 2 3/\n", "m.obj:5: ", "7//1"}, {FOUR "f 1 2 3/1/\n", "m.obj:5: ", "7//1"},
      {FOUR "f 1 2 3/1/1/1\n", "m.obj:5: ", "7//1"}, {FOUR "f 1 2 3/0\n", "m.obj:5: ", "count from 1"},
      {FOUR "f 1 2 /3\n", "m.obj:5: ", "7//1"}, {FOUR "f 1 2 x\n", "m.obj:5: \"x\"", "7//1"},
      {FOUR "f 1 2 3.5\n", "m.obj:5: \"3.5\"", "7//1"}, {FOUR "f 1 2 3-\n", "m.obj:5: ", "7//1"},
      {FOUR "f 1 2 -\n", "m.obj:5: ", "7//1"}, {"v 0 0\nf 1 1 1\n", "m.obj:1: ", "three coordinates"},
      {"v 0 0", "m.obj:1: ", "three coordinates"}, {"v\n", "m.obj:1: ", "three coordinates"},
      {"v 0 \\\n\nv 1 1 1\n", "m.obj:2: ", "three coordinates"}, {"v 0 nan 0\n", "m.obj:1: \"nan\"", "finite"},
      {"\nv 0 0 -inf\n", "m.obj:2: \"-inf\"", "finite"}, {"v 1e999 0 0\n", "m.obj:1: ", "finite"},
      {"v 1e101 0 0\n", "m.obj:1: ", "below 1e100"}, {"v 0 zero 0\n", "m.obj:1: \"zero\"", "not a number"},
      {"v 0 1,5 0\n", "m.obj:1: \"1,5\"", "not a number"}, {"v 0 0 0x\n", "m.obj:1: ", "not a number"},
      {"v 1.2.3 0 0\n", "m.obj:1: ", "not a number"}, {"v 0 --1 0\n", "m.obj:1: ", "not a number"},
      {"\x89PNG\r\n\x1a\n", "m.obj:1: ", "not text"}, {"v 0 0 0\n\xff\xfe\n", "m.obj:2: \"..\"", "not text"},
      {"v 0 0 0\n\x01\x02\n", "m.obj:2: ", "not text"}};
  for (size_t k = 0; k < GK_COUNT(bad); ++k) {
    obj file = {0};
    complaint why = {""};
    if (parse(bad[k].text, strlen(bad[k].text), &file, &why)) fail_msg("row %zu was taken", k);
    if (strncmp(why.text, bad[k].place, strlen(bad[k].place)) != 0 || !strstr(why.text, bad[k].sentence))
      fail_msg("row %zu: %s", k, why.text);
    assert_null(file.vertices);
    assert_null(file.triangles);
  }
  complaint why = {""};
  obj file;
  assert_false(parse("v 0 0 0\nv 1 \0 0\n", 17, &file, &why));
  assert_string_equal(why.text, "m.obj:2: there is a byte 0 here; this is not an OBJ file");
}

TEST(long_lines_and_words_fit) {
  enum { CORNERS = 200000 };
  size_t room = 64 + 8 * CORNERS, size;
  char *text = malloc(room);
  obj file;
  complaint why = {""};
  assert_non_null(text);
  size = (size_t)snprintf(text, room, "v 0 0 0\nv 1 0 0\nv 0 1 0\nf");
  for (int k = 0; k < CORNERS; ++k) size += (size_t)snprintf(text + size, room - size, " %d/%d", k % 3 + 1, k % 9 + 1);
  assert_true(parse(text, size, &file, &why));
  assert_int_equal(file.triangle_count, CORNERS - 2);
  obj_free(&file);
  memset(text, '7', room); /* one number of a million digits */
  memcpy(text, "v 0 0 ", 6);
  assert_false(parse(text, room, &file, &why));
  assert_non_null(strstr(why.text, "m.obj:1: \"777777777777777777777777...\""));
  free(text);
}

/* A file that is cut off or changed anywhere: an answer, and a body that can be built or is refused. */
static void try_to_build(const char *text, size_t size) {
  const material stuff = {1.0, 1000.0, 0.01};
  complaint why = {""};
  obj file = {0};
  mesh body;
  if (parse(text, size, &file, &why)) {
    if (mesh_build("m.obj", &file, &stuff, &body, &why)) {
      for (int k = 0; k < body.vertex_count; ++k) {
        assert_true(isfinite(body.rest[k].x + body.rest[k].y + body.rest[k].z) && fabs(body.rest[k].x) <= 1.0);
        assert_true(body.mass[k] > 0.0);
      }
      for (int k = 0; k < body.spring_count; ++k)
        assert_true(body.springs[k].rest > 0.0 && isfinite(body.springs[k].stiffness));
      for (int k = 0; k < body.hinge_count; ++k) assert_true(isfinite(body.hinges[k].rest + body.hinges[k].stiffness));
      mesh_free(&body);
    } else assert_true(strlen(why.text) > 0);
    obj_free(&file);
  } else assert_true(strlen(why.text) > 0);
}

TEST(cut_and_mutated_files_are_survived) {
  static const char text[] =
      "# a\nv 0.5 -1e3 .25\r\nv 1 0 0\nv 0 1 0\nv 0 0 1 \\\n1\nf 1/2/3 2//4 -2\nf 1 2 3 4\nf 2 3 4\n";
  static const char pieces[] = "0123456789-+.e/\\#vf \n\r\t\xff\x01nai";
  char changed[sizeof text];
  uint32_t chance = 12345;
  for (size_t size = 0; size < sizeof text; ++size) try_to_build(text, size);
  for (int k = 0; k < 20000; ++k) {
    memcpy(changed, text, sizeof text);
    for (int c = 0; c < 1 + k % 4; ++c) {
      chance = chance * 1664525u + 1013904223u;
      changed[(chance >> 8) % (sizeof text - 1)] = pieces[(chance >> 24) % (sizeof pieces - 1)];
    }
    try_to_build(changed, sizeof text - 1);
  }
}

static void build(const char *text, mesh *body) {
  const material stuff = {1.0, 1000.0, 0.01};
  complaint why = {""};
  obj file;
  assert_true(parse(text, strlen(text), &file, &why));
  if (!mesh_build("m.obj", &file, &stuff, body, &why)) fail_msg("%s", why.text);
  obj_free(&file);
}

TEST(bodies_are_counted) {
  mesh body;
  build(BOX, &body); /* closed */
  assert_int_equal(body.edge_count, 6);
  assert_int_equal(body.hinge_count, 6);
  assert_int_equal(body.open_edges + body.crowded_edges, 0);
  mesh_free(&body);
  build(FOUR "v 0 -1 0\nf 1 2 3\nf 1 2 4\nf 1 2 5\n", &body); /* three triangles at an edge */
  assert_int_equal(body.crowded_edges, 1);
  assert_int_equal(body.open_edges, 6);
  assert_int_equal(body.hinge_count, 0);
  mesh_free(&body);
  /* The first vertex twice, one that isn't used, a triangle without area, one repeated with its corners turned. */
  build(FOUR "v 0 0 0\nv 9 9 9\nf 1 2 3\nf 5 2 4\nf 1 5 2\nf 2 3 1\n", &body);
  assert_int_equal(body.joined, 1);
  assert_int_equal(body.isolated, 1);
  assert_int_equal(body.flat, 1);
  assert_int_equal(body.twice, 1);
  assert_int_equal(body.vertex_count, 4);
  assert_int_equal(body.triangle_count, 2);
  assert_int_equal(body.hinge_count, 1);
  mesh_free(&body);
}

TEST(bodies_measure_a_metre) {
  static const char *const scales[] = {"1e-90", "1e-9", "1", "1e9", "1e90"};
  for (size_t k = 0; k < GK_COUNT(scales); ++k) {
    char text[256];
    mesh body;
    snprintf(text, sizeof text, "v 0 0 0\nv %s 0 0\nv 0 %s 0\nf 1 2 3\n", scales[k], scales[k]);
    build(text, &body);
    double width = 0.0;
    for (int a = 0; a < 3; ++a) width = fmax(width, body.rest[a].x - body.rest[0].x);
    assert_true(fabs(width - 1.0) < 1e-12);
    mesh_free(&body);
  }
}

/* Internal forces can't push a body along: a hinge's weights add up to nothing, and at rest it is at rest. */
TEST(hinges_are_at_rest_and_push_nobody) {
  mesh body;
  build("v 0 0 0\nv 1 .1 0\nv .3 1 0\nv .2 -.7 .4\nf 1 2 3\nf 2 1 4\n", &body);
  assert_int_equal(body.hinge_count, 1);
  double sum = 0.0;
  v3 s = {0.0, 0.0, 0.0};
  for (int k = 0; k < 4; ++k) {
    assert_int_equal(body.share_first[k + 1] - body.share_first[k], 1);
    sum += body.share_weight[k];
    s = v3_mad(s, body.share_weight[k], body.rest[k]);
  }
  assert_true(fabs(sum) < 1e-14);
  assert_true(fabs(v3_length(s) - body.hinges[0].rest) < 1e-12);
  assert_true(body.hinges[0].rest > 0.1);
  mesh_free(&body);
}

TEST(what_is_written_reads_back) {
  char path[] = "/tmp/gk_obj_testXXXXXX";
  complaint why = {""};
  obj file, again;
  int descriptor = mkstemp(path);
  assert_true(descriptor >= 0);
  assert_true(parse(BOX, strlen(BOX), &file, &why));
  assert_true(obj_write(path, &file, &why));
  assert_true(obj_read(path, &again, &why));
  assert_int_equal(again.vertex_count, file.vertex_count);
  assert_memory_equal(again.triangles, file.triangles, (size_t)file.triangle_count * sizeof *file.triangles);
  obj_free(&file);
  obj_free(&again);
  remove(path);
  assert_false(obj_read(path, &again, &why));
  assert_non_null(strstr(why.text, "can't be opened"));
  assert_false(obj_read("/tmp", &again, &why));
  assert_non_null(strstr(why.text, "/tmp: can't be read"));
  assert_false(obj_read("/dev/null", &again, &why));
  assert_string_equal(why.text, "/dev/null:1: the file is empty");
}

int main(void) { return run_all_tests(); }
