// Plays: time, buttons, keys, and the hands on the camera.

const [play, slider, clock, arrows, speed] = ["play", "slider", "clock", "arrows", "speed"].map((name) => document.getElementById(name));
const start = film.time[0], end = film.time[frames - 1];
slider.min = start;
slider.max = end;
document.querySelector("#title b").textContent = film.name;
document.querySelector("#title span").textContent =
  `${film.items > 1 ? `${film.items} robots · ` : ""}drag to turn, shift-drag to move, wheel to zoom`;
document.title = film.name;
let now = start, playing = true, before = null;

function plays(yes) {
  playing = yes;
  play.textContent = yes ? "❚❚" : "▶";
  if (yes && now >= end) now = start;
}
function tick(stamp) {
  if (playing && before !== null) now += ((stamp - before) / 1000) * +speed.value;
  before = stamp;
  if (now > end + 0.6) now = start;
  show(Math.min(now, end), arrows.checked);
  clock.textContent = `${Math.min(now, end).toFixed(2)} s`;
  slider.value = Math.min(now, end);
  requestAnimationFrame(tick);
}

play.onclick = () => plays(!playing);
slider.oninput = () => { now = +slider.value; plays(false); };
window.onkeydown = (event) => {
  const go = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.key === " ") plays(!playing);
  else if (go) { now = clamp(now + (go * (end - start)) / Math.max(1, frames - 1), start, end); plays(false); }
  else return;
  event.preventDefault();
};

const fingers = new Map();
canvas.onpointerdown = (event) => { canvas.setPointerCapture(event.pointerId); fingers.set(event.pointerId, event); };
canvas.onpointerup = canvas.onpointercancel = (event) => fingers.delete(event.pointerId);
canvas.onpointermove = (event) => {
  const old = fingers.get(event.pointerId);
  if (!old) return;
  const dx = event.clientX - old.clientX, dy = event.clientY - old.clientY;
  if (fingers.size === 2) {
    const other = [...fingers.values()].find((finger) => finger.pointerId !== event.pointerId);
    const apart = (a) => Math.hypot(a.clientX - other.clientX, a.clientY - other.clientY);
    view.distance *= apart(old) / Math.max(1, apart(event));
  } else if (event.shiftKey || event.buttons === 2) {
    const { right, up } = look(), scale = view.distance / canvas.clientHeight;
    for (let k = 0; k < 3; k++) view.middle[k] += scale * (dy * up[k] - dx * right[k]);
  } else {
    view.turn -= 0.008 * dx;
    view.rise = clamp(view.rise + 0.008 * dy, -0.2, 1.5);
  }
  fingers.set(event.pointerId, event);
};
canvas.oncontextmenu = (event) => event.preventDefault();
canvas.addEventListener("wheel", (event) => { view.distance *= Math.exp(0.001 * event.deltaY); event.preventDefault(); }, { passive: false });

plays(true);
if (location.hash) { now = clamp(+location.hash.slice(1) || start, start, end); plays(false); }  // page.html#1.5 is at 1.5 s
requestAnimationFrame(tick);
