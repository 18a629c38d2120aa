// What there is to see: bodies, the ground, shadows, forces; and the camera.

function program(vertex, fragment) {
  const made = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, "#version 300 es\nprecision highp float;\n" + text);
    gl.compileShader(shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(shader));
    gl.attachShader(made, shader);
  }
  gl.linkProgram(made);
  const names = {};
  for (let k = 0; k < gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS); k++) {
    const { name } = gl.getActiveUniform(made, k);
    names[name] = gl.getUniformLocation(made, name);
  }
  return { made, names };
}

const light = unit([0.45, 0.3, 0.9]), sky = [0.875, 0.902, 0.933];
const shader = program(
  `layout(location = 0) in vec3 place;
   layout(location = 1) in vec3 normal;
   uniform mat4 camera, model;
   uniform vec3 scale;
   out vec3 world, direction;
   void main() {
     vec4 at = model * vec4(place * scale, 1.0);
     world = at.xyz;
     direction = mat3(model) * (normal / scale);
     gl_Position = camera * at;
   }`,
  `uniform vec4 color;
   uniform vec3 eye, light, sky, middle;
   uniform float cell, reach;
   in vec3 world, direction;
   out vec4 shown;
   float lines(vec2 x) {  // one at the lines of a grid, smooth at every distance
     vec2 wide = fwidth(x), near = abs(fract(x - 0.5) - 0.5) / max(wide, 1e-6);
     return max(1.0 - min(near.x, near.y), 0.0) * clamp(0.4 / max(wide.x, wide.y) - 0.6, 0.0, 1.0);
   }
   void main() {
     if (reach < 0.0) { shown = color; return; }
     vec3 n = normalize(direction), toward = normalize(eye - world);
     if (dot(n, toward) < 0.0) n = -n;
     float day = max(dot(n, light), 0.0), above = 0.5 + 0.5 * n.z;
     vec3 shade = color.rgb * (mix(vec3(0.42, 0.43, 0.48), vec3(0.62, 0.64, 0.66), above) + 0.5 * day);
     if (cell > 0.0) {
       shade = mix(shade, shade * 0.93, lines(world.xy / cell));
       shade = mix(shade, shade * 0.88, lines(world.xy / (5.0 * cell)));
       shade = mix(shade, sky, smoothstep(1.2 * reach, 6.0 * reach, length(world.xy - middle.xy)));
     } else {
       shade += 0.16 * pow(max(dot(n, normalize(toward + light)), 0.0), 40.0);
       shade += 0.10 * pow(1.0 - max(dot(n, toward), 0.0), 3.0);
     }
     shown = vec4(shade, color.a);
   }`
);

// --- bodies ----------------------------------------------------------------------------------------------------------

const poses = numbers(film.poses), forces = numbers(film.forces), frames = film.time.length;
const bodies = film.items * film.bodies, slots = film.items * film.slots;
const palette = [[0.20, 0.36, 0.55], [0.90, 0.55, 0.24], [0.86, 0.87, 0.89], [0.36, 0.40, 0.46], [0.62, 0.67, 0.73]];
const drawn = film.shapes.flatMap((shape) => {
  const placed = matrix(shape.rotation, shape.position);
  const color = shape.color.length ? shape.color : palette[Math.min(film.depths[shape.body], palette.length - 1)];
  return parts(shape).map(([form, scale, at]) => ({ body: shape.body, form, scale, at: times(placed, at), color: [...color, 1] }));
});

// Where body k is between two frames; of its axes, x and y are given.
function placed(k, frame, next, share) {
  const a = 9 * (frame * bodies + k), b = 9 * (next * bodies + k), mixed = [];
  for (let i = 0; i < 9; i++) mixed.push((1 - share) * poses[a + i] + share * poses[b + i]);
  const x = unit(mixed.slice(3, 6)), z = unit(cross(x, mixed.slice(6))), y = cross(z, x);
  return [...x, 0, ...y, 0, ...z, 0, ...mixed.slice(0, 3), 1];
}

// --- the ground ------------------------------------------------------------------------------------------------------

const ground = film.ground;  // null where there is none
function field() {
  const { rows, columns, spacing, origin } = ground, heights = numbers(ground.heights);
  const height = (i, j) => heights[clamp(i, 0, rows - 1) * columns + clamp(j, 0, columns - 1)];
  return surface(rows - 1, columns - 1, (s, t) => {
    const i = Math.round(s * (rows - 1)), j = Math.round(t * (columns - 1));
    const dx = (height(i + 1, j) - height(i - 1, j)) / (2 * spacing[0]), dy = (height(i, j + 1) - height(i, j - 1)) / (2 * spacing[1]);
    return [origin[0] + i * spacing[0], origin[1] + j * spacing[1], height(i, j), -dx, -dy, 1];
  });
}

// --- what the camera sees: all bodies, from the first frame to the last; with those that travel far, it travels -------

// Where all moving bodies are on average, [x, y] in each frame, smoothed over a second.
function groupPath() {
  const sums = [[0, 0]];
  for (let frame = 0; frame < frames; frame++) {
    const sum = [0, 0];
    let count = 0;
    for (let k = 0; k < bodies; k++)
      if (film.moving[k % film.bodies]) { count++; for (let x = 0; x < 2; x++) sum[x] += poses[9 * (frame * bodies + k) + x]; }
    sums.push(sum.map((value, x) => sums[frame][x] + value / (count || 1)));
  }
  let first = 0, last = 0;
  return film.time.map((time) => {
    while (film.time[first] < time - 0.5) first++;
    while (last < frames && film.time[last] <= time + 0.5) last++;
    return [0, 1].map((x) => (sums[last][x] - sums[first][x]) / (last - first));
  });
}

const path = groupPath(), middle = [0, 0, 0];
let reach = 0, size = 0, travelled = 0, follows = false;
const diagonal = (box) => Math.hypot(...box.map(([a, b]) => b - a)) || 0;
{
  const empty = () => [0, 1, 2].map(() => [Infinity, -Infinity]);
  const far = empty(), near = empty(), course = empty().slice(1);  // of the world, around the path, of the path
  const within = (value, range) => { range[0] = Math.min(range[0], value); range[1] = Math.max(range[1], value); };
  for (let frame = 0; frame < frames; frame += Math.max(1, Math.floor(frames / 8)))
    for (let item = 0; item < film.items; item++) {
      const own = empty();
      for (let k = 0; k < film.bodies; k++)
        for (let x = 0; x < 3; x++) {
          const value = poses[9 * (frame * bodies + item * film.bodies + k) + x];
          if (film.moving[k]) for (const [box, from] of [[far, 0], [own, 0], [near, path[frame][x] ?? 0]]) within(value - from, box[x]);
        }
      size = Math.max(size, diagonal(own));
    }
  for (const at of path) for (let x = 0; x < 2; x++) within(at[x], course[x]);
  travelled = diagonal(course);
  size = Math.max(size || 0, film.size);
  follows = travelled > Math.max(2 * size, 0.5 * diagonal(near));
  const seen = follows ? near : far;
  for (let x = 0; x < 3; x++) middle[x] = 0.5 * (seen[x][0] + seen[x][1]) || 0;
  if (follows) for (let x = 0; x < 2; x++) middle[x] += path[0][x];
  reach = Math.max(diagonal(seen) + 0.6 * film.size, 1.3 * size);
}

// Moves the camera to where the group is between two frames.
function follow(frame, next, share) {
  for (let x = 0; x < 2; x++) {
    const at = follows ? (1 - share) * path[frame][x] + share * path[next][x] : 0;
    for (const point of [view.middle, middle]) point[x] += at - view.along[x];
    view.along[x] = at;
  }
}
const view = { turn: -0.9, rise: 0.32, distance: 1.2 * reach, middle: [...middle], along: follows ? [...path[0]] : [0, 0] };

const floor = !ground ? null : ground.heights
  ? { form: mesh(field()), model: matrix(identity, [0, 0, 0]) }
  : (() => {
      const R = ground.axes, n = [R[2], R[5], R[8]], wide = 20 * reach + 2 * travelled, away = ground.height - dot(n, middle);
      const plane = surface(1, 1, (s, t) => [wide * (s - 0.5), wide * (t - 0.5), 0, 0, 0, 1]);
      return { form: mesh(plane), model: matrix(R, middle.map((x, k) => x + away * n[k])), n };
    })();
const cell = 10 ** Math.floor(Math.log10(size)) * (size / 10 ** Math.floor(Math.log10(size)) > 4 ? 1 : 0.25);

function look() {
  const c = Math.cos(view.rise), back = [c * Math.cos(view.turn), c * Math.sin(view.turn), Math.sin(view.rise)];
  const eye = view.middle.map((x, k) => x + view.distance * back[k]);
  const right = unit(cross([0, 0, 1], back)), up = cross(back, right);
  const turn = [right[0], up[0], back[0], 0, right[1], up[1], back[1], 0, right[2], up[2], back[2], 0,
    -dot(right, eye), -dot(up, eye), -dot(back, eye), 1];
  const near = 0.02 * view.distance, end = 60 * Math.max(view.distance, reach), wide = canvas.width / canvas.height;
  const f = 2.1 * Math.min(1, wide);
  const lens = [f / wide, 0, 0, 0, 0, f, 0, 0, 0, 0, (end + near) / (near - end), -1, 0, 0, (2 * end * near) / (near - end), 0];
  return { eye, right, up, camera: times(lens, turn) };
}

// --- drawing ---------------------------------------------------------------------------------------------------------

const u = shader.names;

function draw(form, scale, model, color) {
  gl.bindVertexArray(form.array);
  gl.uniformMatrix4fv(u.model, false, model);
  gl.uniform3fv(u.scale, scale);
  gl.uniform4fv(u.color, color);
  gl.drawArrays(gl.TRIANGLES, 0, form.count);
}

// What flattens all that is above a plane along the light.
function flattened() {
  const { n } = floor, down = dot(n, light), h = ground.height + 0.0006 * reach, M = [];
  for (let j = 0; j < 3; j++) for (let i = 0; i < 4; i++) M.push(i < 3 ? (i === j ? 1 : 0) - (light[i] * n[j]) / down : 0);
  return [...M, ...light.map((x) => (h * x) / down), 1];
}

function arrow(point, force) {
  const strength = Math.hypot(...force) / film.weight, length = size * Math.min(1.1 * strength, 1 + 0.2 * Math.log1p(strength));
  if (length < 0.01 * size) return;
  const R = along(force), n = unit(force), thick = 0.011 * size, head = Math.min(0.1 * size, 0.5 * length);
  const at = (s) => point.map((x, k) => x + s * n[k]), red = [0.86, 0.17, 0.22, 1];
  draw(pipe, [thick, thick, length - head], matrix(R, at((length - head) / 2)), red);
  draw(cone, [2.6 * thick, 2.6 * thick, head], matrix(R, at(length - head)), red);
}

function show(now, withForces) {
  const dense = window.devicePixelRatio || 1, wide = Math.round(canvas.clientWidth * dense), high = Math.round(canvas.clientHeight * dense);
  if (canvas.width !== wide || canvas.height !== high) { canvas.width = wide; canvas.height = high; }
  let frame = 0;
  while (frame + 1 < frames && film.time[frame + 1] <= now + 1e-9) frame++;
  const next = Math.min(frame + 1, frames - 1), gone = film.time[next] - film.time[frame];
  const share = gone > 0 ? clamp((now - film.time[frame]) / gone, 0, 1) : 0;

  gl.viewport(0, 0, wide, high);
  gl.clearColor(...sky, 1);
  gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
  gl.enable(gl.DEPTH_TEST);
  gl.useProgram(shader.made);
  follow(frame, next, share);
  const { eye, camera } = look();
  gl.uniformMatrix4fv(u.camera, false, camera);
  for (const [name, value] of Object.entries({ eye, light, sky, middle })) gl.uniform3fv(u[name], value);

  gl.uniform1f(u.reach, reach);
  gl.uniform1f(u.cell, cell);
  if (floor) draw(floor.form, [1, 1, 1], floor.model, [0.755, 0.785, 0.82, 1]);
  gl.uniform1f(u.cell, 0);

  const models = [];
  for (let k = 0; k < bodies; k++) models.push(placed(k, frame, next, share));
  const everything = (paint) => {
    for (let item = 0; item < film.items; item++)
      for (const part of drawn) paint(part, times(models[item * film.bodies + part.body], part.at));
  };
  if (floor && floor.n && dot(floor.n, light) > 0.2) {
    const flat = flattened();
    gl.uniform1f(u.reach, -1);  // plain colour
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    gl.enable(gl.STENCIL_TEST);  // a place in the shadow of two bodies is no darker
    gl.stencilFunc(gl.EQUAL, 0, 255);
    gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
    gl.depthMask(false);
    everything((part, model) => draw(part.form, part.scale, times(flat, model), [0.10, 0.14, 0.22, 0.30]));
    gl.depthMask(true);
    gl.disable(gl.STENCIL_TEST);
    gl.disable(gl.BLEND);
    gl.uniform1f(u.reach, reach);
  }
  everything((part, model) => draw(part.form, part.scale, model, part.color));
  if (withForces)
    for (let k = 0; k < slots; k++) {
      const start = 6 * (frame * slots + k);
      arrow([...forces.subarray(start, start + 3)], [...forces.subarray(start + 3, start + 6)]);
    }
  return frame;
}
