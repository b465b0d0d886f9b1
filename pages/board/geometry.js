// Geometry of the drawing: points, boxes and paths. Nothing here touches the page.
const READABLE = 0.65;   // smallest scale; below it, names are illegible, so only part of the drawing is shown
// The rectangle around all rectangles; null if there are none.
function extent(all) {
  if (!all.length) return null;
  return { left: Math.min(...all.map((b) => b.left)), right: Math.max(...all.map((b) => b.right)),
    top: Math.min(...all.map((b) => b.top)), bottom: Math.max(...all.map((b) => b.bottom)) };
}

// The view of a drawing of the extent `all` in a frame of this width and at most this height: height, scale and middle.
// It shows the whole drawing, or (unless `whole`) as much of it as stays readable, around the point `heart`. With `fill`
// the frame takes all of this height, and a small drawing is enlarged.
function frame(all, wide, most, heart, whole, fill) {
  const across = all.right - all.left + 40, down = all.bottom - all.top + 40;
  const scale = Math.max(Math.min(1, wide / across), READABLE);
  const tall = fill ? most : Math.round(Math.min(Math.max(down * scale, 300), most));
  const shrink = Math.max(Math.min(fill ? 1.6 : 1, wide / across, tall / down), whole ? 0.1 : READABLE);
  const place = (low, top, room, at) => top - low + 40 <= room + 2 ? (low + top) / 2
    : Math.min(Math.max(at, low - 20 + room / 2), top + 20 - room / 2);
  const position = { x: place(all.left, all.right, wide / shrink, heart.x),
    y: place(all.top, all.bottom, tall / shrink, heart.y) };
  return { tall, scale: shrink, position };
}

// The free point nearest to the middle of a view, for a new box; below all boxes if the view is full.
function freePoint(from, to, boxes) {
  const x = (from.x + to.x) / 2, y = (from.y + to.y) / 2, points = [];
  for (let u = from.x + 110; u <= to.x - 110; u += 40) for (let v = from.y + 40; v <= to.y - 40; v += 35) points.push([u, v]);
  const free = ([u, v]) => !boxes.some((b) => b.left < u + 115 && b.right > u - 115 && b.top < v + 40 && b.bottom > v - 40);
  const far = ([u, v]) => Math.hypot(u - x, v - y);
  return points.filter(free).sort((p, q) => far(p) - far(q))[0] || [x, Math.max(...boxes.map((b) => b.bottom)) + 60];
}

// The path from `effect` to `cause` along `arrows`, which an arrow from cause to effect would close into a cycle; null if there is none.
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

// The nearest box to `column` in a direction, not far to the side; null if there is none. `all` has points by name.
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
