// Lines of the drawing: where they run, how they look, and which line is under the pointer. Python routes them around
// boxes. A line is [...ends, kind]; the kinds are arrow, bundle (arrows of a closed group), share (an unmeasured cause),
// apart and together. `at` are the boxes of its ends, if these are in closed groups.
const REACH = 8;         // pixels around a line where a click selects it
const ROUND = 9;
const BEFORE_TIP = 34;   // distance of the link of causes that act together from the tips of their arrows, in pixels

const lineId = (l) => [...l.ends, l.kind];

function linesOf(data) {
  const of = (items, kind) => items.map((l) => ({ ...l, kind, ends: l.ends || [l.from, l.to] }));
  return [...of(data.apart, "apart"), ...of(data.shared, "share"), ...of(data.bundles, "bundle"), ...of(data.edges, "arrow"),
    ...of(data.together, "together")];
}

// The point where the line from the middle of a box to another point leaves the box.
function leaves(box, to) {
  const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2, dx = to[0] - x, dy = to[1] - y;
  const part = Math.min((box.right - box.left) / 2 / Math.abs(dx || 1e-9), (box.bottom - box.top) / 2 / Math.abs(dy || 1e-9));
  return [x + dx * Math.min(part, 1), y + dy * Math.min(part, 1)];
}

function straight(one, other) {
  const middle = (b) => [(b.left + b.right) / 2, (b.top + b.bottom) / 2];
  return [leaves(one, middle(other)), leaves(other, middle(one))];
}

// Every line with its path. `boxes` are rectangles by name. While a box in `moved` is dragged, its lines are straight.
function laid(data, boxes, moved) {
  const tips = {}, out = [];
  for (const l of linesOf(data)) {
    if (l.kind === "together") {
      const effect = l.at.at(-1), paths = l.at.slice(0, -1).map((c) => tips[id([c, effect])]).filter(Boolean);
      const before = out.filter((o) => o.kind === l.kind && o.at.at(-1) === effect).length;
      if (paths.length > 1) out.push({ ...l, path: paths.map((p) => along(p, BEFORE_TIP + 24 * before)) });
      continue;
    }
    const [a, b] = l.at || l.ends;
    if (!boxes[a] || !boxes[b]) continue;
    const path = l.path && !moved.has(a) && !moved.has(b) ? l.path : straight(boxes[a], boxes[b]);
    if (l.kind === "arrow" || l.kind === "bundle") tips[id([a, b])] = path;
    out.push({ ...l, path });
  }
  return out;
}

const distance = (p, q) => Math.hypot(q[0] - p[0], q[1] - p[1]);

// The point at this distance before the end of a path, at most at its middle.
function along(path, far) {
  const whole = path.slice(1).reduce((sum, p, k) => sum + distance(path[k], p), 0);
  let left = Math.min(far, whole / 2);
  for (let k = path.length - 1; k > 0; k--) {
    const leg = distance(path[k], path[k - 1]);
    if (leg >= left && leg) return [0, 1].map((i) => path[k][i] + (path[k - 1][i] - path[k][i]) * left / leg);
    left -= leg;
  }
  return path[0];
}

const middleOf = (path) => along(path, Infinity);

// The link of causes that act together: a bar across their arrows with a mark in its middle.
const markOf = (path) => [0, 1].map((i) => path.reduce((sum, p) => sum + p[i], 0) / path.length);

function away(p, a, b) {
  const [dx, dy] = [b[0] - a[0], b[1] - a[1]], long = dx * dx + dy * dy;
  const t = long ? Math.min(1, Math.max(0, ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / long)) : 0;
  return distance(p, [a[0] + t * dx, a[1] + t * dy]);
}

// The line nearest to a point, within reach; a mark of causes that act together takes precedence over its arrows.
function lineAt(lines, p, scale) {
  const reach = REACH / Math.min(scale, 1);
  let best = null, least = reach;
  for (const l of lines) {
    if (l.kind === "together") {
      if (distance(p, markOf(l.path)) < reach + 4) return l;
      continue;
    }
    for (let k = 1; k < l.path.length; k++) {
      const far = away(p, l.path[k - 1], l.path[k]);
      if (far < least) { best = l; least = far; }
    }
  }
  return best;
}

function trace(ctx, path) {
  ctx.beginPath();
  ctx.moveTo(...path[0]);
  for (let k = 1; k < path.length - 1; k++) { // rounded corners
    const part = (other) => Math.min(0.5, ROUND / (distance(path[k], other) || 1));
    const near = part(path[k - 1]), far = part(path[k + 1]);
    ctx.lineTo(...[0, 1].map((i) => path[k][i] + near * (path[k - 1][i] - path[k][i])));
    ctx.quadraticCurveTo(...path[k], ...[0, 1].map((i) => path[k][i] + far * (path[k + 1][i] - path[k][i])));
  }
  ctx.lineTo(...path.at(-1));
  ctx.stroke();
}

function tip(ctx, path, size) {
  const end = path.at(-1), from = path.at(-2), angle = Math.atan2(end[1] - from[1], end[0] - from[0]);
  const corner = (turn) => [end[0] - size * Math.cos(angle + turn), end[1] - size * Math.sin(angle + turn)];
  ctx.beginPath();
  ctx.moveTo(...end);
  ctx.lineTo(...corner(0.42));
  ctx.lineTo(...corner(-0.42));
  ctx.fill();
}

function wordsAt(ctx, text, [x, y], size, ink) {
  ctx.font = size + "px " + ink.font;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.setLineDash([]);
  ctx.lineWidth = 4;
  ctx.strokeStyle = ink.paper;
  text.split("\n").forEach((line, k) => {
    ctx.strokeText(line, x, y + k * (size + 2));
    ctx.fillText(line, x, y + k * (size + 2));
  });
}

const DASHES = { share: [9, 7], apart: [2, 6] };

function drawLine(ctx, l, chosen, ink) {
  const color = chosen ? ink.chosen : l.lit ? ink.bad : ink.text;
  const faint = { arrow: 0.7, bundle: 0.7, share: 0.8, apart: 0.6, together: 0.9 }[l.kind];
  ctx.globalAlpha = chosen || l.lit ? 1 : faint;
  ctx.strokeStyle = ctx.fillStyle = color;
  ctx.lineWidth = chosen ? 5 : l.kind === "bundle" ? 3 : l.lit ? 3.5 : 2;
  ctx.setLineDash(DASHES[l.kind] || (l.contested ? [9, 6] : []));
  trace(ctx, l.path);
  ctx.setLineDash([]);
  if (l.kind !== "apart" && l.kind !== "together") tip(ctx, l.path, chosen ? 19 : 15);
  if (l.kind === "share") tip(ctx, [...l.path].reverse(), 15);
  ctx.globalAlpha = 1;
  if (l.kind === "apart") wordsAt(ctx, "‖", middleOf(l.path), 20, ink);
  if (l.label) wordsAt(ctx, l.label, middleOf(l.path), 13, ink);
  if (l.kind === "together") mark(ctx, markOf(l.path), color, ink);
}

function mark(ctx, [x, y], color, ink) {
  ctx.beginPath();
  ctx.arc(x, y, 9, 0, 2 * Math.PI);
  ctx.fillStyle = ink.paper;
  ctx.fill();
  ctx.strokeStyle = color;
  ctx.lineWidth = 2;
  ctx.stroke();
  for (const turn of [1, -1]) {
    ctx.beginPath();
    ctx.moveTo(x - 5, y - 5 * turn);
    ctx.lineTo(x + 5, y + 5 * turn);
    ctx.stroke();
  }
}
