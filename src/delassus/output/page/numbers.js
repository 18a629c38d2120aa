// Vectors are arrays of three numbers, matrices sixteen numbers by columns.

function numbers(text) {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => { const size = Math.hypot(...a) || 1; return a.map((x) => x / size); };
const clamp = (x, least, most) => Math.max(least, Math.min(most, x));

// Rotations are nine numbers by rows.
const matrix = (R, p) => [R[0], R[3], R[6], 0, R[1], R[4], R[7], 0, R[2], R[5], R[8], 0, p[0], p[1], p[2], 1];
const identity = [1, 0, 0, 0, 1, 0, 0, 0, 1];

function times(A, B) {
  const C = new Float32Array(16);
  for (let j = 0; j < 16; j += 4)
    for (let i = 0; i < 4; i++)
      C[j + i] = A[i] * B[j] + A[4 + i] * B[j + 1] + A[8 + i] * B[j + 2] + A[12 + i] * B[j + 3];
  return C;
}

// Axes whose third is a direction.
function along(direction) {
  const n = unit(direction), x = unit(cross(Math.abs(n[0]) < 0.9 ? [1, 0, 0] : [0, 1, 0], n)), y = cross(n, x);
  return [x[0], y[0], n[0], x[1], y[1], n[1], x[2], y[2], n[2]];
}
