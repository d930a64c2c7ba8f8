#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
layout(local_size_x = 32) in;
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer ints { int at[]; };
struct line { float a; int b; };
layout(push_constant, scalar) uniform parameters { int n; ints x; float scale; line by; int shift; };
void main() {
  const uint i = gl_GlobalInvocationID.x;
  if (i < uint(n)) x.at[i] = int(float(x.at[i]) * scale) + int(by.a) + by.b + shift;
}
