"use strict";
(() => {
const one = (selector) => document.querySelector(selector);
const all = (selector) => [...document.querySelectorAll(selector)];
const numbers = (text) => text.split(" ").filter(Boolean).map(Number);
const bytesOf = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const READ = 0, HELD = 2;
const UNSET = 0, STAYS = 1, OF_BLOCK = 2;
const SPEEDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000];

const script = one("#steps");
const bytes = bytesOf(script.textContent);
const count = Number(script.dataset.count);
const stages = all("#stages li").map((item) => item.textContent);
const kernels = all(".kernels li");
const launches = numbers(one(".kernels").dataset.launches);
const pictures = all(".picture").map(picture);

// Where each step starts, and the number of its block, counted through all launches.
const starts = new Uint32Array(count + 1);
const blocks = new Uint32Array(count + 1);

let position = 0;
let playing = false;
let colours = {};

// One number of the steps; `at` is where the next one starts.
let at = 0;
function number() {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    value |= (byte & 127) << shift;
    if (byte < 128) return value;
  }
}

// The values of a store: single ones, or one that is repeated.
function unpacked(points) {
  const values = new Uint8Array(points);
  for (let done = 0; done < points; ) {
    const head = bytes[at++];
    if (head < 128) {
      values.set(bytes.subarray(at, at + head + 1), done);
      at += head + 1;
      done += head + 1;
    } else {
      values.fill(bytes[at++], done, done + head - 126);
      done += head - 126;
    }
  }
  return values;
}

// Reads the step at `at`, and calls `touched` with the picture, the kind and the runs of each touch.
function readStep(touched) {
  const step = { launch: number(), block: number(), stage: number() };
  for (let touches = number(); touches > 0; touches--) {
    const key = number();
    const runs = [];
    let end = 0, points = 0;
    for (let left = number(); left > 0; left--) {
      const distance = number(), length = number() + 1;
      for (let same = distance & 1 ? number() + 2 : 1; same > 0; same--) {
        end += (distance >>> 1) + length;
        runs.push(end - length, end);
        points += length;
      }
    }
    const values = key % 3 === READ ? null : unpacked(points);
    if (touched) touched(Math.floor(key / 3), key % 3, runs, points, values);
  }
  return step;
}

function index() {
  let last = null, block = 0;
  for (let number = 0; number < count; number++) {
    starts[number] = at;
    const step = readStep(null);
    if (last && (step.launch !== last.launch || step.block !== last.block)) block++;
    blocks[number] = block;
    last = step;
  }
  starts[count] = at;
  blocks[count] = block + 1;
}

// Points lie in planes of the first two dimensions, side by side, with a gap of one point. A single dimension is
// wrapped like text.
function layout(extents) {
  let [across = 1, down = 1, ...rest] = extents;
  const points = extents.reduce((product, extent) => product * extent, 1);
  if (extents.length === 1 && across > 64) {
    down = Math.ceil(across / 64);
    across = 64;
    rest = [];
  }
  const planes = rest.reduce((product, extent) => product * extent, 1);
  const columns = Math.max(1, Math.min(planes, Math.round(Math.sqrt((planes * down) / across))));
  const rows = Math.ceil(planes / columns);
  const width = columns * (across + 1) - 1, height = rows * (down + 1) - 1;
  const pixels = new Uint32Array(points), used = new Uint8Array(width * height);
  for (let point = 0; point < points; point++) {
    const plane = Math.floor(point / (across * down)), inside = point % (across * down);
    const x = (plane % columns) * (across + 1) + (inside % across);
    const y = Math.floor(plane / columns) * (down + 1) + Math.floor(inside / across);
    pixels[point] = y * width + x;
    used[pixels[point]] = 1;
  }
  return { across, down, columns, width, height, pixels, used, points };
}

function picture(figure) {
  const shape = layout(numbers(figure.dataset.extents));
  const canvas = figure.querySelector("canvas");
  const scale = Math.max(1, Math.min(24, Math.floor(272 / Math.max(shape.width, shape.height))));
  canvas.width = shape.width * scale;
  canvas.height = shape.height * scale;
  const small = document.createElement("canvas");
  small.width = shape.width;
  small.height = shape.height;
  return {
    figure, canvas, scale, small, shape,
    label: canvas.getAttribute("aria-label"),
    name: figure.querySelector("b").textContent,
    given: bytesOf(figure.dataset.values),
    now: figure.querySelector(".now"),
    values: new Uint8Array(shape.points),
    states: new Uint8Array(shape.points),
    owners: new Uint32Array(shape.points),
    flashes: new Uint8Array(shape.points),
    frames: new Map(),
    lit: false,
    changed: true,
  };
}

function reset() {
  position = 0;
  for (const shown of pictures) {
    shown.states.fill(shown.given.length > 0 ? STAYS : UNSET);
    if (shown.given.length > 0) shown.values.set(shown.given);
    shown.flashes.fill(0);
    shown.now.textContent = "";
    shown.frames.clear();
    shown.changed = true;
  }
}

function clearFlashes() {
  for (const shown of pictures) {
    if (shown.lit) {
      shown.lit = false;
      shown.flashes.fill(0);
      shown.now.textContent = "";
      shown.changed = true;
    }
  }
}

// Grows the frame around the points that the block holds in one plane.
function frame(shown, first, end) {
  const { across, down } = shown.shape;
  for (const point of [first, end - 1]) {
    const plane = Math.floor(point / (across * down)), inside = point % (across * down);
    const spans = Math.floor(first / across) !== Math.floor((end - 1) / across);
    const x = inside % across, y = Math.floor(inside / across);
    const known = shown.frames.get(plane) || [x, y, x, y];
    shown.frames.set(plane, [
      spans ? 0 : Math.min(known[0], x), Math.min(known[1], y),
      spans ? across - 1 : Math.max(known[2], x), Math.max(known[3], y),
    ]);
  }
}

// Does the next step; with `flash`, its points light up.
function advance(flash) {
  at = starts[position];
  const block = blocks[position];
  if (position === 0 || blocks[position - 1] !== block) {
    for (const shown of pictures) {
      shown.frames.clear();
      shown.changed = true;
    }
  }
  const seen = [];
  const step = readStep((which, kind, runs, points, values) => {
    const shown = pictures[which];
    let used = 0;
    for (let run = 0; run < runs.length; run += 2) {
      const [first, end] = [runs[run], runs[run + 1]];
      if (kind !== READ) {
        shown.values.set(values.subarray(used, used + end - first), first);
        shown.states.fill(kind === HELD ? OF_BLOCK : STAYS, first, end);
        shown.owners.fill(block, first, end);
        used += end - first;
      }
      if (kind === HELD) frame(shown, first, end);
      if (flash) light(shown, first, end, kind === READ ? 1 : 2);
    }
    shown.changed = true;
    shown.lit ||= flash;
    seen.push({ shown, kind, points });
  });
  position++;
  return { step, seen };
}

function light(shown, first, end, flash) {
  for (let point = first; point < end; point++) {
    if (shown.flashes[point] < flash) shown.flashes[point] = flash;
  }
}

const plural = (points) => (points === 1 ? "1 point" : `${points} points`);

const did = (kind, points) => `${kind === READ ? "reads" : "stores"} ${plural(points)}`;

// Writes what the current step is and does.
function describe(done) {
  one("#scrub").value = position;
  for (const item of kernels) item.removeAttribute("aria-current");
  if (!done) {
    one("#where").textContent = `Before the first of ${count} steps`;
    one("#what").textContent = "Only the inputs have values.";
    return;
  }
  const { step, seen } = done;
  const kernel = kernels[launches[step.launch]];
  const [x, y, z] = numbers(kernel.dataset.grid);
  const index = [step.block % x, Math.floor(step.block / x) % y, Math.floor(step.block / x / y)];
  const used = z > 1 ? 3 : y > 1 ? 2 : 1;
  kernel.setAttribute("aria-current", "step");
  one("#where").textContent =
    `Step ${position} of ${count}: kernel ${kernel.querySelector("b").textContent}, ` +
    `launch ${step.launch + 1} of ${launches.length}, ` +
    `block (${index.slice(0, used).join(", ")}) of ${[x, y, z].slice(0, used).join(" x ")}`;
  const parts = seen.map(({ shown, kind, points }) =>
    `${did(kind, points)} of ${shown.name}${kind === HELD ? " for this block" : ""}`);
  one("#what").textContent = `Computes ${stages[step.stage]}: ${parts.join(", ")}.`;
  for (const { shown, kind, points } of seen) {
    shown.now.textContent += `${shown.now.textContent ? ", " : ""}${did(kind, points)}`;
  }
}

function draw(shown) {
  const { shape, small, canvas, scale } = shown;
  const block = position > 0 ? blocks[position - 1] : 0;
  const context = small.getContext("2d");
  const image = context.createImageData(shape.width, shape.height);
  const to = new Uint32Array(image.data.buffer);
  // What is no point looks like the page.
  for (let pixel = 0; pixel < to.length; pixel++) if (!shape.used[pixel]) to[pixel] = colours.paper;
  let computed = 0;
  for (let point = 0; point < shape.points; point++) {
    const state = shown.states[point], flash = shown.flashes[point];
    if (state !== UNSET) computed++;
    if (flash) to[shape.pixels[point]] = flash === 1 ? colours.read : colours.stored;
    else if (state !== UNSET) {
      const alive = state === STAYS || shown.owners[point] === block;
      to[shape.pixels[point]] = ((alive ? 255 : 90) << 24 | shown.values[point] * 0x010101) >>> 0;
    }
  }
  context.putImageData(image, 0, 0);
  const target = canvas.getContext("2d");
  target.clearRect(0, 0, canvas.width, canvas.height);
  target.imageSmoothingEnabled = false;
  target.drawImage(small, 0, 0, canvas.width, canvas.height);
  target.strokeStyle = colours.tile;
  target.lineWidth = Math.min(2, scale);
  for (const [plane, [left, top, right, bottom]] of shown.frames) {
    const x = (plane % shape.columns) * (shape.across + 1) + left;
    const y = Math.floor(plane / shape.columns) * (shape.down + 1) + top;
    target.strokeRect(x * scale, y * scale, (right - left + 1) * scale, (bottom - top + 1) * scale);
  }
  shown.figure.classList.toggle("active", shown.lit);
  shown.figure.dataset.computed = computed;
  canvas.setAttribute("aria-label", `${shown.label}: ${computed} of ${plural(shape.points)} computed`);
  shown.changed = false;
}

function drawAll() {
  for (const shown of pictures) if (shown.changed) draw(shown);
}

// Goes to a step; what it does lights up.
function go(to) {
  to = Math.max(0, Math.min(count, to));
  clearFlashes();
  if (to < position || to === 0) reset();
  let done = null;
  if (to > 0 && to === position) {
    // The step lights up again.
    reset();
  }
  while (position < to) done = advance(position + 1 === to);
  describe(done);
  drawAll();
}

// The end of a block after or before the current step.
function blockEnd(direction) {
  let to = position + direction;
  while (to > 0 && to < count && blocks[to] === blocks[to - 1]) to += direction;
  return to;
}

function play(on) {
  playing = on && count > 0;
  const button = one("#play");
  button.textContent = playing ? "Pause" : "Play";
  button.setAttribute("aria-label", playing ? "Pause" : "Play");
  one("#where").setAttribute("aria-live", playing ? "off" : "polite");
  if (!playing) return;
  if (position === count) go(0);
  let last = performance.now(), owed = 0;
  const tick = (now) => {
    if (!playing) return;
    owed += ((now - last) / 1000) * Number(one("#speed").value);
    last = now;
    const steps = Math.min(Math.floor(owed), count - position);
    if (steps > 0) {
      owed -= steps;
      clearFlashes();
      let done = null;
      for (let left = steps; left > 0; left--) done = advance(true);
      describe(done);
      drawAll();
    }
    if (position === count) play(false);
    else requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}

function stop(to) {
  play(false);
  go(to);
}

function setColours() {
  const style = getComputedStyle(document.documentElement);
  const packed = (name) => {
    const hex = parseInt(style.getPropertyValue(name).trim().slice(1), 16);
    return (0xff000000 | (hex & 255) << 16 | (hex & 0xff00) | hex >> 16) >>> 0;
  };
  colours = {
    read: packed("--read"), stored: packed("--stored"), paper: packed("--paper"),
    tile: style.getPropertyValue("--tile").trim(),
  };
  for (const shown of pictures) shown.changed = true;
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("select, pre")) return;
  const block = event.shiftKey;
  const actions = {
    ArrowRight: () => stop(block ? blockEnd(1) : position + 1),
    ArrowLeft: () => stop(block ? blockEnd(-1) : position - 1),
    Home: () => stop(0),
    End: () => stop(count),
  };
  if (!event.target.closest("button, summary")) actions[" "] = () => play(!playing);
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
}

function start() {
  index();
  const usual = SPEEDS.find((speed) => speed >= count / 30) || SPEEDS[SPEEDS.length - 1];
  for (const speed of SPEEDS) {
    one("#speed").add(new Option(speed === 1 ? "1 step/s" : `${speed} steps/s`, speed, speed === usual, speed === usual));
  }
  const on = (id, action) => one(id).addEventListener("click", action);
  on("#first", () => stop(0));
  on("#block-back", () => stop(blockEnd(-1)));
  on("#back", () => stop(position - 1));
  on("#play", () => play(!playing));
  on("#on", () => stop(position + 1));
  on("#block-on", () => stop(blockEnd(1)));
  on("#last", () => stop(count));
  one("#scrub").addEventListener("input", () => stop(Number(one("#scrub").value)));
  document.addEventListener("keydown", keys);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { setColours(); drawAll(); });
  setColours();
  reset();
  // An address that ends with #120 opens the page at step 120.
  const asked = Number(location.hash.slice(1));
  go(asked || 0);
  if (!asked && !matchMedia("(prefers-reduced-motion: reduce)").matches) play(true);
}

start();
})();
