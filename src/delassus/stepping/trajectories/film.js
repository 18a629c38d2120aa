// Plays a film: rigid shapes on a ground, with contact forces. Drag turns the camera, the wheel moves it.
"use strict";

const canvas = document.getElementById("view");
const gl = canvas.getContext("webgl", { antialias: true, preserveDrawingBuffer: true });

function numbers(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

const poses = numbers(film.poses), forces = numbers(film.forces), frames = film.time.length;

// --- programs and meshes -------------------------------------------------------------------------------------------

function program(vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  return made;
}

const shader = program(
  `attribute vec3 place, normal;
   uniform mat4 camera, model;
   uniform vec3 scale;
   varying vec3 world, direction;
   void main() {
     vec4 at = model * vec4(place * scale, 1.0);
     world = at.xyz;
     direction = (model * vec4(normal / scale, 0.0)).xyz;
     gl_Position = camera * at;
   }`,
  `precision highp float;
   uniform vec3 color, eye;
   uniform float grid;
   varying vec3 world, direction;
   void main() {
     vec3 n = normalize(direction);
     float light = 0.45 + 0.45 * max(dot(n, normalize(vec3(0.4, 0.3, 0.9))), 0.0) + 0.1 * n.z;
     vec3 shade = color;
     if (grid > 0.0) {
       vec2 cell = floor(world.xy / grid);
       shade *= mod(cell.x + cell.y, 2.0) < 0.5 ? 1.0 : 0.93;
       shade = mix(shade, vec3(0.91, 0.93, 0.95), smoothstep(6.0, 25.0, length(world - eye)));
     }
     gl_FragColor = vec4(shade * light, 1.0);
   }`
);
const uniform = {}, attribute = {};
for (const name of ["camera", "model", "scale", "color", "eye", "grid"]) uniform[name] = gl.getUniformLocation(shader, name);
for (const name of ["place", "normal"]) attribute[name] = gl.getAttribLocation(shader, name);

function mesh(corners) {
  const buffer = gl.createBuffer();
  gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
  gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(corners), gl.STATIC_DRAW);
  return { buffer, count: corners.length / 6 };
}

// A surface over a grid of (s, t) from 0 to 1: each of its points is [x, y, z, nx, ny, nz].
function surface(rows, columns, point) {
  const corners = [];
  for (let i = 0; i < rows; i++)
    for (let j = 0; j < columns; j++)
      for (const [a, b] of [[0, 0], [1, 0], [1, 1], [0, 0], [1, 1], [0, 1]])
        corners.push(...point((i + a) / rows, (j + b) / columns));
  return corners;
}

function round(s) {
  return [Math.cos(2 * Math.PI * s), Math.sin(2 * Math.PI * s)];
}

const ball = mesh(surface(32, 16, (s, t) => {
  const [c, d] = round(s), z = -Math.cos(Math.PI * t), r = Math.sin(Math.PI * t);
  return [r * c, r * d, z, r * c, r * d, z];
}));
const tube = surface(32, 1, (s, t) => { const [c, d] = round(s); return [c, d, t - 0.5, c, d, 0]; });
const lids = [0.5, -0.5].flatMap((z) =>
  surface(32, 1, (s, t) => { const [c, d] = round(s); return [t * c, t * d, z, 0, 0, Math.sign(z)]; }));
const cylinder = mesh([...tube, ...lids]);
const pipe = mesh(tube);
const cube = mesh([0, 1, 2].flatMap((axis) => [0.5, -0.5].flatMap((side) => surface(1, 1, (s, t) => {
  const at = [0, 0, 0], n = [0, 0, 0];
  at[axis] = side; n[axis] = Math.sign(side); at[(axis + 1) % 3] = s - 0.5; at[(axis + 2) % 3] = t - 0.5;
  return [...at, ...n];
}))));
const cone = mesh([...surface(16, 1, (s, t) => {
  const [c, d] = round(s); return [(1 - t) * c, (1 - t) * d, t, c, d, 0.4];
})]);

// --- matrices: rotations are nine numbers by rows, models sixteen by columns ----------------------------------------

function matrix(R, p) {
  return [R[0], R[3], R[6], 0, R[1], R[4], R[7], 0, R[2], R[5], R[8], 0, p[0], p[1], p[2], 1];
}
function times(A, B) {
  const C = new Array(16).fill(0);
  for (let i = 0; i < 4; i++) for (let j = 0; j < 4; j++) for (let k = 0; k < 4; k++) C[4 * j + i] += A[4 * k + i] * B[4 * j + k];
  return C;
}
function along(z) {
  const size = Math.hypot(...z), n = z.map((x) => x / size);
  const a = Math.abs(n[0]) < 0.9 ? [1, 0, 0] : [0, 1, 0];
  let x = cross(a, n);
  const length = Math.hypot(...x);
  x = x.map((e) => e / length);
  const y = cross(n, x);
  return [x[0], y[0], n[0], x[1], y[1], n[1], x[2], y[2], n[2]];
}
function cross(a, b) {
  return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
}
const identity = [1, 0, 0, 0, 1, 0, 0, 0, 1];

// --- what there is to draw -------------------------------------------------------------------------------------------

const palette = [[0.27, 0.43, 0.62], [0.85, 0.48, 0.27], [0.40, 0.60, 0.40], [0.60, 0.60, 0.64], [0.72, 0.57, 0.33]];

// Parts of a shape: a mesh, its scale, and where it is in the shape's frame.
function parts(shape) {
  const [a, b, c] = shape.size, up = (z) => matrix(identity, [0, 0, z]);
  switch (shape.kind) {
    case "sphere": return [[ball, [a, a, a], up(0)]];
    case "ellipsoid": return [[ball, [a, b, c], up(0)]];
    case "box": return [[cube, [a, b, c], up(0)]];
    case "cylinder": return [[cylinder, [a, a, b], up(0)]];
    default: return [[pipe, [a, a, b], up(0)], [ball, [a, a, a], up(b / 2)], [ball, [a, a, a], up(-b / 2)]];
  }
}
const drawn = film.shapes.flatMap((shape) => {
  const placed = matrix(shape.rotation, shape.position);
  const color = shape.color.length ? shape.color : palette[shape.body % palette.length];
  return parts(shape).map(([form, scale, at]) => ({ body: shape.body, form, scale, at: times(placed, at), color }));
});

let floor = null;  // none where nothing was simulated on a ground
if (film.ground && film.ground.heights) {
  const g = film.ground, height = (i, j) => g.heights[i * g.columns + j];
  const clamp = (x, most) => Math.max(0, Math.min(most, Math.round(x)));
  floor = { model: matrix(identity, [0, 0, 0]), form: mesh(surface(g.rows - 1, g.columns - 1, (s, t) => {
    const i = clamp(s * (g.rows - 1), g.rows - 1), j = clamp(t * (g.columns - 1), g.columns - 1);
    const [i0, i1, j0, j1] = [clamp(i - 1, g.rows - 1), clamp(i + 1, g.rows - 1), clamp(j - 1, g.columns - 1), clamp(j + 1, g.columns - 1)];
    const dx = (height(i1, j) - height(i0, j)) / ((i1 - i0) * g.spacing), dy = (height(i, j1) - height(i, j0)) / ((j1 - j0) * g.spacing);
    return [g.origin[0] + i * g.spacing, g.origin[1] + j * g.spacing, height(i, j), -dx, -dy, 1];
  })) };
} else if (film.ground) {
  const R = film.ground.axes, h = film.ground.height, wide = 200;
  floor = {
    model: matrix(R, [R[2] * h, R[5] * h, R[8] * h]),
    form: mesh(surface(1, 1, (s, t) => [wide * (s - 0.5), wide * (t - 0.5), 0, 0, 0, 1])),
  };
}

// --- camera: looks at the middle of all bodies in the first and the last frame ---------------------------------------

const each = film.items * film.bodies * 12;
const middle = [0, 0, 0], far = [[Infinity, -Infinity], [Infinity, -Infinity], [Infinity, -Infinity]];
for (const frame of [0, frames - 1])
  for (let k = 0; k < film.items * film.bodies; k++)
    for (let x = 0; x < 3; x++) {
      const value = poses[frame * each + k * 12 + 9 + x];
      far[x] = [Math.min(far[x][0], value), Math.max(far[x][1], value)];
    }
for (let x = 0; x < 3; x++) middle[x] = 0.5 * (far[x][0] + far[x][1]);
const reach = Math.max(0.5, Math.hypot(...far.map(([a, b]) => b - a)));
const view = { turn: 0.8, rise: 0.35, distance: 1.8 * reach };

function look() {
  const c = Math.cos(view.rise), s = Math.sin(view.rise);
  const back = [c * Math.cos(view.turn), c * Math.sin(view.turn), s];
  const eye = middle.map((x, k) => x + view.distance * back[k]);
  let right = cross([0, 0, 1], back);
  const size = Math.hypot(...right);
  right = right.map((x) => x / size);
  const up = cross(back, right);
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  const turn = [right[0], up[0], back[0], 0, right[1], up[1], back[1], 0, right[2], up[2], back[2], 0,
    -dot(right, eye), -dot(up, eye), -dot(back, eye), 1];
  const near = 0.01 * view.distance, end = 100 * view.distance, f = 1.7, wide = canvas.width / canvas.height;
  const lens = [f / wide, 0, 0, 0, 0, f, 0, 0, 0, 0, (end + near) / (near - end), -1, 0, 0, (2 * end * near) / (near - end), 0];
  return { eye, camera: times(lens, turn) };
}

// --- drawing ---------------------------------------------------------------------------------------------------------

function draw(form, scale, model, color, grid = 0) {
  gl.bindBuffer(gl.ARRAY_BUFFER, form.buffer);
  gl.vertexAttribPointer(attribute.place, 3, gl.FLOAT, false, 24, 0);
  gl.vertexAttribPointer(attribute.normal, 3, gl.FLOAT, false, 24, 12);
  gl.uniformMatrix4fv(uniform.model, false, model);
  gl.uniform3fv(uniform.scale, scale);
  gl.uniform3fv(uniform.color, color);
  gl.uniform1f(uniform.grid, grid);
  gl.drawArrays(gl.TRIANGLES, 0, form.count);
}

function arrow(point, force) {
  const size = Math.hypot(...force), length = (0.4 * reach * size) / film.weight;
  if (length < 0.004 * reach) return;
  const R = along(force), n = force.map((x) => x / size), thick = 0.008 * reach, head = Math.min(0.04 * reach, 0.5 * length);
  const at = (s) => point.map((x, k) => x + s * n[k]);
  draw(pipe, [thick, thick, length - head], matrix(R, at((length - head) / 2)), [0.85, 0.15, 0.2]);
  draw(cone, [2.5 * thick, 2.5 * thick, head], matrix(R, at(length - head)), [0.85, 0.15, 0.2]);
}

function show(frame) {
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * scale);
  canvas.height = Math.round(canvas.clientHeight * scale);
  gl.viewport(0, 0, canvas.width, canvas.height);
  gl.clearColor(0.91, 0.93, 0.95, 1);
  gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
  gl.enable(gl.DEPTH_TEST);
  gl.useProgram(shader);
  for (const name of Object.values(attribute)) gl.enableVertexAttribArray(name);
  const { eye, camera } = look();
  gl.uniformMatrix4fv(uniform.camera, false, camera);
  gl.uniform3fv(uniform.eye, eye);
  if (floor) draw(floor.form, [1, 1, 1], floor.model, [0.80, 0.83, 0.86], 0.25);
  for (let item = 0; item < film.items; item++)
    for (const part of drawn) {
      const start = frame * each + (item * film.bodies + part.body) * 12;
      const pose = poses.subarray(start, start + 12);
      draw(part.form, part.scale, times(matrix(pose, pose.subarray(9)), part.at), part.color);
    }
  if (arrows.checked)
    for (let k = 0; k < film.items * film.slots; k++) {
      const start = (frame * film.items * film.slots + k) * 6;
      arrow([...forces.subarray(start, start + 3)], [...forces.subarray(start + 3, start + 6)]);
    }
  clock.textContent = `${film.time[frame].toFixed(2)} s`;
  slider.value = frame;
}

// --- playing ---------------------------------------------------------------------------------------------------------

const [play, slider, clock, arrows] = ["play", "slider", "clock", "arrows"].map((name) => document.getElementById(name));
slider.max = frames - 1;
document.getElementById("title").textContent =
  `${film.name}${film.items > 1 ? `, ${film.items} items` : ""}: drag to turn, wheel to zoom`;
let now = film.time[0], playing = true, before = null;

function frameAt(time) {
  let frame = 0;
  while (frame + 1 < frames && film.time[frame + 1] <= time + 1e-9) frame++;
  return frame;
}
function tick(stamp) {
  if (playing && before !== null) now += (stamp - before) / 1000;
  before = stamp;
  if (now > film.time[frames - 1] + 0.5) now = film.time[0];
  show(frameAt(now));
  requestAnimationFrame(tick);
}
play.onclick = () => { playing = !playing; play.textContent = playing ? "Pause" : "Play"; };
slider.oninput = () => { now = film.time[+slider.value]; playing = false; play.textContent = "Play"; };
canvas.onpointermove = (event) => {
  if (!event.buttons) return;
  view.turn -= 0.008 * event.movementX;
  view.rise = Math.max(-1.5, Math.min(1.5, view.rise + 0.008 * event.movementY));
};
canvas.onwheel = (event) => { view.distance *= Math.exp(0.001 * event.deltaY); event.preventDefault(); };
if (location.hash) { now = film.time[frameAt(+location.hash.slice(1))]; playing = false; play.textContent = "Play"; }
requestAnimationFrame(tick);
