// The overview: a small map of a drawing that is larger than its frame. A click or a drag moves the view.
const MAP_WIDE = 150, MAP_HIGH = 110;

// Show the map in `canvas` and return its scale and corner; null, without a map, if the whole drawing is in view.
function showMap(canvas, net, data, ink) {
  const boxes = data.nodes.map((n) => ({ ...n, left: n.x - n.wide / 2, right: n.x + n.wide / 2, top: n.y - n.high / 2, bottom: n.y + n.high / 2 }));
  const all = extent(boxes), { clientWidth: wide, clientHeight: high } = canvas.parentElement;
  const [from, to] = [net.DOMtoCanvas({ x: 0, y: 0 }), net.DOMtoCanvas({ x: wide, y: high })];
  canvas.hidden = !all || (all.left >= from.x && all.right <= to.x && all.top >= from.y && all.bottom <= to.y);
  if (canvas.hidden) return null;
  if (!canvas.matches(":active")) toCorner(canvas, net, boxes, wide, high);
  const left = Math.min(all.left, from.x), top = Math.min(all.top, from.y);
  const scale = Math.min(MAP_WIDE / (Math.max(all.right, to.x) - left), MAP_HIGH / (Math.max(all.bottom, to.y) - top));
  const ctx = canvas.getContext("2d"), sharp = window.devicePixelRatio || 1;
  canvas.width = MAP_WIDE * sharp;
  const tall = Math.min(MAP_HIGH, Math.ceil((Math.max(all.bottom, to.y) - top) * scale));
  canvas.height = tall * sharp;
  canvas.style.height = tall + "px";
  ctx.scale(sharp * scale, sharp * scale);
  ctx.translate(-left, -top);
  for (const b of boxes) {
    ctx.fillStyle = b.color;
    ctx.fillRect(b.left, b.top, b.right - b.left, b.bottom - b.top);
  }
  ctx.strokeStyle = ink.chosen;
  ctx.lineWidth = 2 / scale;
  ctx.strokeRect(from.x, from.y, to.x - from.x, to.y - from.y);
  return { scale, left, top };
}

// Move the map to another corner of its frame if it covers boxes here and would cover none there.
function toCorner(canvas, net, boxes, wide, high) {
  const covers = (x, y) => boxes.some((b) => {
    const one = net.canvasToDOM({ x: b.left, y: b.top }), other = net.canvasToDOM({ x: b.right, y: b.bottom });
    return one.x < x + MAP_WIDE + 16 && other.x > x && one.y < y + MAP_HIGH + 16 && other.y > y;
  });
  const [right, low] = [wide - MAP_WIDE - 16, high - MAP_HIGH - 16];
  const corners = { "right bottom": [right, low], "left bottom": [0, low], "right top": [right, 0], "left top": [0, 0] };
  if (!covers(...corners[canvas.dataset.corner || "right bottom"])) return;
  const free = Object.keys(corners).find((corner) => !covers(...corners[corner]));
  if (!free) return;
  canvas.dataset.corner = free;
  for (const side of ["left", "right", "top", "bottom"]) canvas.style[side] = free.includes(side) ? "8px" : "auto";
}
