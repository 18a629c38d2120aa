// Meshes of triangles, six numbers a corner: its place and its normal.

const canvas = document.getElementById("view");
const gl = canvas.getContext("webgl2", { alpha: false, antialias: true, stencil: true, preserveDrawingBuffer: true });
if (!gl) {
  const problem = document.getElementById("problem");
  problem.textContent = "This browser cannot draw with WebGL 2. Allow it in its settings, or try another browser.";
  problem.style.display = "grid";
  throw new Error(problem.textContent);
}

function mesh(corners) {
  const array = gl.createVertexArray();
  gl.bindVertexArray(array);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(corners), gl.STATIC_DRAW);
  for (const k of [0, 1]) {
    gl.enableVertexAttribArray(k);
    gl.vertexAttribPointer(k, 3, gl.FLOAT, false, 24, 12 * k);
  }
  return { array, count: corners.length / 6 };
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

const round = (s) => [Math.cos(2 * Math.PI * s), Math.sin(2 * Math.PI * s)];

const ball = mesh(surface(28, 14, (s, t) => {
  const [c, d] = round(s), z = -Math.cos(Math.PI * t), r = Math.sin(Math.PI * t);
  return [r * c, r * d, z, r * c, r * d, z];
}));
const wall = surface(28, 1, (s, t) => { const [c, d] = round(s); return [c, d, t - 0.5, c, d, 0]; });
const lids = [0.5, -0.5].flatMap((z) =>
  surface(28, 1, (s, t) => { const [c, d] = round(s); return [t * c, t * d, z, 0, 0, Math.sign(z)]; }));
const pipe = mesh(wall), cylinder = mesh([...wall, ...lids]);
const cube = mesh([0, 1, 2].flatMap((axis) => [0.5, -0.5].flatMap((side) => surface(1, 1, (s, t) => {
  const at = [0, 0, 0], n = [0, 0, 0];
  at[axis] = side; n[axis] = Math.sign(side); at[(axis + 1) % 3] = s - 0.5; at[(axis + 2) % 3] = t - 0.5;
  return [...at, ...n];
}))));
const cone = mesh([
  ...surface(20, 1, (s, t) => { const [c, d] = round(s); return [(1 - t) * c, (1 - t) * d, t, c, d, 0.4]; }),
  ...surface(20, 1, (s, t) => { const [c, d] = round(s); return [t * c, t * d, 0, 0, 0, -1]; }),
]);

// A convex hull: triangles of corners, nine numbers each.
function hull(places) {
  const corners = [];
  for (let k = 0; k < places.length; k += 9) {
    const [a, b, c] = [0, 3, 6].map((i) => [...places.slice(k + i, k + i + 3)]);
    const n = unit(cross(b.map((x, i) => x - a[i]), c.map((x, i) => x - a[i])));
    for (const corner of [a, b, c]) corners.push(...corner, ...n);
  }
  return mesh(corners);
}

// The parts of a shape: a mesh, its scale, and where it is in the shape's frame.
function parts(shape) {
  const [a, b, c] = shape.size, at = (z) => matrix(identity, [0, 0, z]);
  switch (shape.kind) {
    case "sphere": return [[ball, [a, a, a], at(0)]];
    case "ellipsoid": return [[ball, [a, b, c], at(0)]];
    case "box": return [[cube, [a, b, c], at(0)]];
    case "cylinder": return [[cylinder, [a, a, b], at(0)]];
    case "capsule": return [[pipe, [a, a, b], at(0)], [ball, [a, a, a], at(b / 2)], [ball, [a, a, a], at(-b / 2)]];
    default: return [[hull(shape.triangles), [1, 1, 1], at(0)]];
  }
}
