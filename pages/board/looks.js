// How boxes, arrows and what is being drawn look.
const id = (arrow) => JSON.stringify(arrow);

function boxOf(n, chosen, ink) {
  return { id: n.id, label: n.label, shape: "box", margin: 9, widthConstraint: { maximum: 190 },
    borderWidth: chosen ? 4 : n.heavy ? 3 : 1, shapeProperties: { borderDashes: n.dashed ? [5, 4] : false },
    color: { background: n.color, border: chosen ? ink.main : n.heavy || n.dashed ? ink.text : n.color },
    font: { color: "#15201a", face: ink.font, size: 17, multi: false } };
}

function lineOf(e, chosen, ink) {
  const color = chosen ? ink.main : e.lit ? ink.bad : ink.text;
  const head = chosen ? 0.55 : e.lit ? 0.7 : 0.9;
  return { id: id([e.from, e.to]), from: e.from, to: e.to, arrows: { to: { enabled: true, scaleFactor: head } },
    dashes: e.contested ? [9, 6] : false, width: chosen ? 5 : e.lit ? 3.5 : 2, hoverWidth: 0, selectionWidth: 0,
    color: { color, opacity: chosen || e.lit ? 1 : 0.65, inherit: false }, smooth: { enabled: false },
    label: e.label || undefined,
    font: { size: 13, color: ink.text, face: ink.font, strokeWidth: 4, strokeColor: ink.paper, align: "horizontal" } };
}

// Links other than arrows: an unmeasured cause that both share (dashed, a head at either end), or a
// separation (dotted, a double bar).
function linkOf(l, kind, chosen, ink) {
  const share = kind === "share", color = chosen ? ink.main : l.lit ? ink.bad : ink.text;
  const heads = share ? { enabled: true, scaleFactor: 0.7 } : { enabled: false };
  return { id: JSON.stringify([l.from, l.to, kind]), from: l.from, to: l.to, arrows: { to: heads, from: heads },
    dashes: share ? [9, 7] : [2, 6], width: chosen ? 5 : 2, hoverWidth: 0, selectionWidth: 0,
    color: { color, opacity: chosen || l.lit ? 1 : share ? 0.8 : 0.5, inherit: false },
    smooth: { enabled: true, type: share ? "curvedCW" : "curvedCCW", roundness: 0.22 }, label: share ? undefined : "‖",
    font: { size: 20, color, face: ink.font, strokeWidth: 4, strokeColor: ink.paper, align: "middle" } };
}

function inks(host) {
  const style = getComputedStyle(host), read = (v, other) => style.getPropertyValue(v).trim() || other;
  return { text: read("--st-text-color", "#444"), paper: read("--st-background-color", "#fff"),
    main: read("--st-primary-color", "#2f6f4f"), bad: read("--st-red-text-color", "#c0392b"),
    font: read("--st-font", "sans-serif") };
}

function stroke(ctx, a, b) { ctx.beginPath(); ctx.moveTo(a.x, a.y); ctx.lineTo(b.x, b.y); ctx.stroke(); }

// The arrows of a cycle that would close, in the colour of what is refused.
function flashes(ctx, ends, ink) {
  ctx.strokeStyle = ink.bad;
  ctx.lineWidth = 7;
  ctx.globalAlpha = 0.55;
  for (const [a, b] of ends) stroke(ctx, a, b);
  ctx.globalAlpha = 1;
}

// The arrow that is being drawn, and a frame around the box that it would end in.
function draft(ctx, from, to, box, bad, ink) {
  ctx.strokeStyle = bad ? ink.bad : ink.main;
  ctx.lineWidth = 3;
  ctx.setLineDash(bad ? [6, 8] : []);
  stroke(ctx, from, to);
  if (box) ctx.strokeRect(box.left - 4, box.top - 4, box.right - box.left + 8, box.bottom - box.top + 8);
}

// Make the vis data `set` hold the `wanted` items. `old` are those shown before, by id; unchanged items are left alone.
function refill(set, wanted, old) {
  const gone = set.getIds().filter((i) => !wanted.some((w) => w.id === i));
  if (gone.length) set.remove(gone);
  const changed = wanted.filter((w) => gone.length || !same(w, old[w.id]) || !set.get(w.id));
  if (changed.length) set.update(changed);
}
