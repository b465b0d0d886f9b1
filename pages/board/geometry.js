// Points, boxes and paths of the drawing: nothing here touches the page.
const READABLE = 0.68;   // no smaller than this: rather a part of the drawing than names that cannot be read
const BENDS = Array.from({ length: 28 }, (_, k) => 0.08 + 0.03 * k);

// Points of an arrow as vis-network draws it: straight, or a quadratic curve around the via point of `roundness`.
function curve(from, to, type, roundness) {
  const steps = Math.max(16, Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / 14)), points = [];
  const half = 0.5 * roundness + 0.5, turn = type === "curvedCCW" ? 0.5 - 0.5 * roundness : half;
  const radius = Math.hypot(to.x - from.x, to.y - from.y);
  const angle = Math.atan2(from.y - to.y, to.x - from.x) + turn * Math.PI;
  const via = type ? { x: from.x + half * radius * Math.sin(angle), y: from.y + half * radius * Math.cos(angle) }
    : { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
  for (let k = 1; k < steps; k++) {
    const t = k / steps, s = 1 - t;
    points.push([s * s * from.x + 2 * s * t * via.x + t * t * to.x, s * s * from.y + 2 * s * t * via.y + t * t * to.y]);
  }
  return points;
}

// How an arrow gets past the `boxes` ([name, rectangle] each): its bend, and the box that it passes behind, if any.
function bent(edge, from, to, boxes) {
  const hits = (points) => boxes.find(([n, r]) => n !== edge.from && n !== edge.to && points.some(([x, y]) =>
    x > r.left - 3 && x < r.right + 3 && y > r.top - 3 && y < r.bottom + 3));
  const straight = { enabled: false }, hidden = hits(curve(from, to, null, 0));
  if (!hidden) return { smooth: straight };
  const free = BENDS.flatMap((r) => [["curvedCW", r], ["curvedCCW", r]])
    .find(([type, r]) => !hits(curve(from, to, type, r)));
  return free ? { smooth: { enabled: true, type: free[0], roundness: free[1] } } : { smooth: straight, behind: hidden[0] };
}

// The rectangle around all rectangles; null around none.
function extent(all) {
  if (!all.length) return null;
  return { left: Math.min(...all.map((b) => b.left)), right: Math.max(...all.map((b) => b.right)),
    top: Math.min(...all.map((b) => b.top)), bottom: Math.max(...all.map((b) => b.bottom)) };
}

// The view of a drawing of the extent `all` in a frame of this width and at most this height: height, scale and middle.
// The whole drawing, or (unless `whole`) as much of it as stays readable, around the point `heart`.
function frame(all, wide, most, heart, whole) {
  const across = all.right - all.left + 40, down = all.bottom - all.top + 40;
  const scale = Math.max(Math.min(1, wide / across), READABLE);
  const tall = Math.round(Math.min(Math.max(down * scale, 300), most));
  const shrink = Math.max(Math.min(1, wide / across, tall / down), whole ? 0.1 : READABLE);
  const place = (low, top, room, at) => top - low + 40 <= room + 2 ? (low + top) / 2
    : Math.min(Math.max(at, low - 20 + room / 2), top + 20 - room / 2);
  const position = { x: place(all.left, all.right, wide / shrink, heart.x),
    y: place(all.top, all.bottom, tall / shrink, heart.y) };
  return { tall, scale: shrink, position };
}

// The path from `effect` back to `cause` along `arrows`, which an arrow from cause to effect would close; or null.
function closed(arrows, cause, effect) {
  const came = new Map([[effect, null]]), queue = [effect];
  for (const n of queue) {
    if (n === cause) {
      const walk = [];
      for (let m = n; m !== null; m = came.get(m)) walk.unshift(m);
      return walk;
    }
    for (const [a, b] of arrows) if (a === n && !came.has(b)) { came.set(b, n); queue.push(b); }
  }
  return null;
}

// The box next to `column` in a direction: near, and not far to the side; null if there is none. `all`: points by name.
function nextBox(all, column, dx, dy) {
  const here = all[column];
  let best = null, least = Infinity;
  for (const [n, p] of Object.entries(all)) {
    const along = (p.x - here.x) * dx + (p.y - here.y) * dy;
    const aside = Math.abs((p.x - here.x) * dy) + Math.abs((p.y - here.y) * dx);
    if (n !== column && along > 4 && along + 2 * aside < least) { best = n; least = along + 2 * aside; }
  }
  return best;
}
