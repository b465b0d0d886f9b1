// Appearance of boxes and of arrows in progress.
const MARGIN = 9;
const id = (arrow) => JSON.stringify(arrow);

function boxOf(n, chosen, ink) {
  return { id: n.id, label: n.label, shape: "box", margin: MARGIN,
    widthConstraint: { minimum: n.wide - 2 * MARGIN, maximum: n.wide - 2 * MARGIN },
    heightConstraint: { minimum: n.high - 2 * MARGIN },
    borderWidth: chosen ? 4 : n.heavy ? 3 : 1, shapeProperties: { borderDashes: n.dashed ? [5, 4] : false },
    color: { background: n.color, border: chosen ? ink.main : n.heavy || n.dashed ? ink.text : n.color },
    font: { color: "#15201a", face: ink.font, size: 17, multi: false } };
}

function inks(host) {
  const style = getComputedStyle(host), read = (v, other) => style.getPropertyValue(v).trim() || other;
  return { text: read("--st-text-color", "#444"), paper: read("--st-background-color", "#fff"),
    main: read("--st-primary-color", "#2f6f4f"), chosen: read("--st-link-color", "#2f6f4f"),
    bad: read("--st-red-text-color", "#c0392b"), font: read("--st-font", "sans-serif") };
}

function stroke(ctx, a, b) { ctx.beginPath(); ctx.moveTo(a.x, a.y); ctx.lineTo(b.x, b.y); ctx.stroke(); }

// The arrows of the cycle that a new arrow would close, in the colour of a refusal.
function flashes(ctx, ends, ink) {
  ctx.strokeStyle = ink.bad;
  ctx.lineWidth = 7;
  ctx.globalAlpha = 0.55;
  for (const [a, b] of ends) stroke(ctx, a, b);
  ctx.globalAlpha = 1;
}

// The arrow that is being drawn, and a frame around the box where it would end.
function draft(ctx, from, to, box, bad, ink) {
  ctx.strokeStyle = bad ? ink.bad : ink.main;
  ctx.lineWidth = 3;
  ctx.setLineDash(bad ? [6, 8] : []);
  stroke(ctx, from, to);
  if (box) ctx.strokeRect(box.left - 4, box.top - 4, box.right - box.left + 8, box.bottom - box.top + 8);
}
