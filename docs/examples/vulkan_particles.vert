#version 450
layout(location = 0) in vec4 particle; // place and velocity
layout(location = 0) out vec3 colour;

void main() {
  gl_Position = vec4(particle.x, -particle.y, 0.0, 1.0); // y points up
  gl_PointSize = 1.0;
  colour = mix(vec3(0.3, 0.5, 1.0), vec3(1.0, 0.8, 0.3), min(length(particle.zw) / 2.0, 1.0));
}
