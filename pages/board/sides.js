// Linked tables: the person, this visit and the next visit side by side. `data.slices` is empty for a single table.
const EDGE = 18, HEADING = 44;   // space around the boxes of a slice and above them, in pixels

// The boxes between which an arrow is drawn: an arrow that holds at every visit is drawn at this visit.
function meant(data, [cause, effect]) {
  const { ahead, steps } = data;
  if (!(effect in ahead) || (!(cause in ahead) && steps.includes(cause))) return [cause, effect];
  return [ahead[cause] || cause, ahead[effect]];
}

// The reason why an arrow cannot be drawn between boxes of different visits; null if it can.
function outOfTime(data, [cause, effect]) {
  if (cause in data.ahead && !(effect in data.ahead)) {
    return "Refused: an arrow cannot lead from the next visit back to this visit or to the person.";
  }
  const [a, b] = meant(data, [cause, effect]), never = [a, b].find((n) => data.never.includes(n));
  if (b in data.ahead || never === undefined) return a === b ? "A column cannot be its own cause." : null;
  return "Refused: an arrow from or to " + never + " can only lead from one visit to the next.";
}

// The rectangle and the title of each slice. `boxes` are rectangles by name.
function sides(data, boxes) {
  const shown = data.slices.map((s) => ({ ...s, ...extent(s.boxes.map((n) => boxes[n]).filter(Boolean)) }));
  const found = shown.filter((s) => s.left !== undefined);
  const top = Math.min(...found.map((s) => s.top)) - HEADING, bottom = Math.max(...found.map((s) => s.bottom)) + EDGE;
  return found.map((s) => ({ title: s.title, left: s.left - EDGE, right: s.right + EDGE, top, bottom }));
}

// The nearest x to which a box may move: between the boxes of the slices next to its own.
function between(data, name, x, boxes) {
  const own = data.slices.findIndex((s) => s.boxes.includes(name));
  if (own < 0) return x;
  const half = (boxes[name].right - boxes[name].left) / 2 + 2 * EDGE + 6;
  const of = (some) => some.flatMap((s) => s.boxes).map((n) => boxes[n]).filter(Boolean);
  const least = Math.max(-Infinity, ...of(data.slices.slice(0, own)).map((b) => b.right + half));
  const most = Math.min(Infinity, ...of(data.slices.slice(own + 1)).map((b) => b.left - half));
  return Math.max(least, Math.min(x, most));
}

// Titles stay in view while the drawing is moved. `corners` are the upper corners of the view.
function drawSides(ctx, found, [from, to], scale, ink) {
  const size = Math.max(17, 13 / scale);
  for (const { title, left, right, top, bottom } of found) {
    ctx.beginPath();
    ctx.roundRect(left, top, right - left, bottom - top, 12);
    ctx.fillStyle = ctx.strokeStyle = ink.text;
    ctx.globalAlpha = 0.05;
    ctx.fill();
    ctx.globalAlpha = 0.35;
    ctx.lineWidth = 1;
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
  ctx.font = "600 " + size + "px " + ink.font;
  ctx.textAlign = "center";
  ctx.textBaseline = "middle";
  ctx.fillStyle = ink.text;
  for (const { title, left, right, top } of found) {
    const [one, other] = [Math.max(left, from.x), Math.min(right, to.x)];
    if (other - one > ctx.measureText(title).width) ctx.fillText(title, (one + other) / 2, Math.max(top, from.y) + HEADING / 2);
  }
}
