// The drawing board. Python owns the graph: each action of the user is shown at once, sent to Python in a list, and
// shown again as in Python's answer. An action stays in the list until Python has taken it, so that none is lost.
const boards = new WeakMap();

export default function (api) {
  let board = boards.get(api.parentElement);
  if (!board) boards.set(api.parentElement, (board = make(api.parentElement)));
  board.take(api);
  return () => { board.end(); boards.delete(api.parentElement); };
}

const NEAR = 6;          // largest movement of a click, in pixels
const CLEARS = 9000;     // milliseconds after which a refusal disappears

function make(parent) {
  const $ = (query) => parent.querySelector(query);
  const root = $(".board"), host = $(".canvas"), say = $(".say"), flag = $(".flag"), list = $(".arrows");
  const map = $(".map"), finder = $(".finder select"), naming = $(".naming input"), tray = $(".tray"), typed = $(".tray input");
  const self = String(Date.now()) + Math.random();
  let api, data, net, nodes, timer, watch, clears, waiting = [], sent = 0, seen = {}, ink = {};
  let mode = "draw", press = null, over = null, spoken = null, flash = [], shown = "", lifted = null, across = 0, chosen = "", mapped = null, link = null, from = null;

  // --- to and from Python -------------------------------------------------------------------------------------
  function act(action) {
    sent += 1;
    waiting.push({ n: sent, ...action });
    api.setStateValue("acts", { board: self, list: waiting });
  }

  // On a narrow screen, boxes are arranged in shorter rows.
  function measure() {
    const wide = host.clientWidth < 700 ? Math.max(Math.round(host.clientWidth / 100) * 140, 420) : 1000;
    if (host.clientWidth && wide !== data.wide && !waiting.length) act({ do: "width", wide });
  }

  function take(now) {
    api = now;
    const before = data;
    data = JSON.parse(JSON.stringify(api.data));
    if (data.board === self) waiting = waiting.filter((a) => a.n > data.taken);
    if (before && waiting.length) { // Python has not seen all actions yet: the screen is newer
      data = { ...before, message: data.message, undo: data.undo, redo: data.redo, board: data.board, taken: data.taken };
    }
    if (!globalThis.vis) { clearTimeout(timer); timer = setTimeout(() => take(api), 50); return; }
    ink = inks(host);
    if (!net) start();
    buttons();
    describe();
    if (!waiting.length) show(!before || before.view !== data.view || before.fits !== data.fits);
    if (data.message && data.message.n !== spoken) { spoken = data.message.n; tell(data.message.text, data.message.bad); }
    measure();
    root.dataset.taken = data.board === self ? data.taken : 0;
  }

  function tell(text, bad) {
    shown = text;
    say.textContent = text;
    say.classList.toggle("bad", Boolean(bad));
    clearTimeout(clears);
    if (bad) clears = setTimeout(() => { flash = []; if (net) net.redraw(); tell(data.hint); }, CLEARS);
  }

  // --- the drawing --------------------------------------------------------------------------------------------
  function start() {
    nodes = new globalThis.vis.DataSet();
    net = new globalThis.vis.Network(host, { nodes, edges: [] }, {
      physics: false, layout: { improvedLayout: false },
      interaction: { dragNodes: false, dragView: true, zoomView: false, selectable: false, hover: false,
        keyboard: false } });
    net.on("beforeDrawing", underlay);
    net.on("afterDrawing", overlay);
    host.querySelectorAll("[tabindex]").forEach((e) => e.setAttribute("tabindex", "-1"));
    watch = new ResizeObserver(() => {
      if (!host.clientWidth || host.clientWidth === across) return; // a longer message does not move the view
      across = host.clientWidth;
      net.redraw();
      fit();
      measure();
    });
    watch.observe(root);
    host.addEventListener("pointerdown", down, true);
    host.addEventListener("pointermove", move, true);
    host.addEventListener("pointerup", up, true);
    host.addEventListener("pointercancel", cancel, true);
    host.addEventListener("pointerleave", () => { if (!press) hover(null); });
    host.addEventListener("keydown", key);
    host.addEventListener("dblclick", (e) => {
      const column = net.getNodeAt(spot(e));
      if (column in data.groups) { select({ columns: [column], arrow: null }); regroup(); }
    });
    host.addEventListener("dragover", (e) => e.preventDefault());
    host.addEventListener("drop", (e) => {
      const column = e.dataTransfer.getData("text/plain");
      e.preventDefault();
      if (data.tray.includes(column)) bring(column, net.DOMtoCanvas(spot(e)));
    });
    host.addEventListener("where", (e) => { // the place of a box or a line on the canvas, for programs that operate the page
      const found = lines().find((l) => same(lineId(l), e.detail.line));
      if (found) {
        const [x, y] = found.kind === "together" ? markOf(found.path) : middleOf(found.path);
        e.detail.at = net.canvasToDOM({ x, y });
      } else e.detail.at = nodes.get(e.detail.column) ? net.canvasToDOM(net.getPosition(e.detail.column)) : null;
    });
  }

  const box = (n) => boxOf(n, data.selected.columns.includes(n.id), ink);
  const at = (n) => net.getPosition(n.id);
  const lines = () => laid(data, boundaries(),
    new Set(data.nodes.filter((n) => nodes.get(n.id) && Math.hypot(at(n).x - n.x, at(n).y - n.y) > 1).map((n) => n.id)));
  const isChosen = (l) => same(l.kind === "arrow" ? data.selected.arrow : link, l.kind === "arrow" ? l.ends : lineId(l));
  const lineUnder = (spot) => { const p = net.DOMtoCanvas(spot); return lineAt(lines(), [p.x, p.y], net.getScale()); };

  function show(refit) {
    const boxes = data.nodes.map((n) => {
      const b = box(n), was = seen.places && seen.places[n.id];
      return was && same(was, [n.x, n.y]) && nodes.get(n.id) ? b : { ...b, x: n.x, y: n.y };
    });
    nodes.remove(nodes.getIds().filter((i) => !boxes.some((b) => b.id === i)));
    nodes.update(boxes);
    seen = { places: Object.fromEntries(data.nodes.map((n) => [n.id, [n.x, n.y]])) };
    if (refit) fit();
    net.redraw();
    if (chosen !== String(data.selected.columns)) sight();
    chosen = String(data.selected.columns);
    flag.textContent = behindText(data.behind);
  }

  // The whole drawing, or (unless `whole`) as much of it as stays readable, around the drawing's main column.
  function fit(whole) {
    const turns = lines().flatMap((l) => l.path.map(([x, y]) => ({ left: x, right: x, top: y, bottom: y })));
    const all = extent([...sides(data, boundaries()), ...nodes.getIds().map((n) => net.getBoundingBox(n)), ...turns]);
    if (!all || !host.clientWidth) return;
    const heart = nodes.get(data.centre) ? net.getPosition(data.centre) : { x: all.left, y: all.top };
    const { tall, scale, position } = frame(all, host.clientWidth, highest(), heart, whole, full());
    if (Math.abs(host.clientHeight - tall) > 2) { host.style.height = tall + "px"; net.redraw(); }
    net.moveTo({ position, scale, animation: false });
  }

  // Full screen leaves room for the buttons above the frame, and for the tray and the legend if they are below it.
  const full = () => root.getRootNode().fullscreenElement === root;
  function highest() {
    if (!full()) return 520;
    const { top, bottom } = host.getBoundingClientRect(), legend = $(".legend").getBoundingClientRect();
    const below = tray.offsetHeight + (legend.top >= bottom ? legend.height : 0) + 40;
    return Math.max(300, Math.floor(window.innerHeight - (top - root.getBoundingClientRect().top + root.scrollTop) - below));
  }

  async function enlarge() {
    try { await (full() ? document.exitFullscreen() : root.requestFullscreen()); }
    catch { tell("This browser does not allow full screen here.", true); }
  }

  function enlarged() {
    $("[data-do=full]").textContent = full() ? "Leave full screen" : "Full screen";
    if (net) { net.redraw(); fit(); }
  }

  // Bring a column that was selected in a field into view.
  function sight() {
    const column = data.selected.columns.at(-1);
    if (column === undefined || !nodes.get(column)) return;
    const { x, y } = net.getPosition(column);
    look([x, y]);
  }

  // Bring a point into view.
  function look([x, y]) {
    const at = net.canvasToDOM({ x, y });
    if (at.x < 20 || at.y < 20 || at.x > host.clientWidth - 20 || at.y > host.clientHeight - 20) {
      net.moveTo({ position: { x, y }, scale: net.getScale(), animation: false });
    }
  }

  function zoom(factor) {
    net.moveTo({ scale: Math.min(Math.max(net.getScale() * factor, 0.2), 2.5), animation: false });
  }

  // --- actions in progress -------------------------------------------------------------------------------------
  const spot = (e) => { const r = host.getBoundingClientRect(); return { x: e.clientX - r.left, y: e.clientY - r.top }; };

  function down(e) {
    if (e.button !== 0 || press) return;
    const at = spot(e), column = net.getNodeAt(at);
    press = { at, now: at, column, moved: false, pointer: e.pointerId, move: mode === "move" || e.shiftKey };
    if (column === undefined) return;
    e.stopPropagation();
    e.preventDefault();
    host.focus({ preventScroll: true });
    try { host.setPointerCapture(e.pointerId); } catch { /* a pointer that has already gone */ }
    const place = net.getPosition(column), canvas = net.DOMtoCanvas(at);
    press.off = { x: place.x - canvas.x, y: place.y - canvas.y };
  }

  function move(e) {
    const at = spot(e);
    if (!press) { hover(at); return; }
    if (e.pointerId !== press.pointer) return;
    press.now = at;
    press.moved = press.moved || Math.hypot(at.x - press.at.x, at.y - press.at.y) > NEAR;
    if (press.column === undefined || !press.moved) return;
    e.stopPropagation();
    if (press.move) {
      const c = net.DOMtoCanvas(at);
      const x = between(data, press.column, c.x + press.off.x, boundaries());
      net.moveNode(press.column, Math.round(x), Math.round(c.y + press.off.y));
      return;
    }
    const target = net.getNodeAt(at);
    if (target !== press.target) {
      press.target = target;
      const bad = target !== undefined && target !== press.column && refusal(press.column, target);
      press.bad = Boolean(bad);
      tell(bad || (target !== undefined && target !== press.column ? "Let go to draw " + name(meant(data, [press.column, target]))
        : "From " + press.column + " to …"), bad);
    }
    requestAnimationFrame(() => net && net.redraw());
  }

  function up(e) {
    const p = press;
    if (!p || e.pointerId !== p.pointer) return;
    press = null;
    flash = [];
    const at = spot(e);
    if (p.column === undefined) {
      if (!p.moved) pick(net.getNodeAt(at), lineUnder(at), e);
      return;
    }
    e.stopPropagation();
    if (!p.moved) pick(p.column, undefined, e);
    else if (p.move) keep();
    else {
      const target = net.getNodeAt(at);
      if (target !== undefined && target !== p.column) draw(p.column, target);
      else tell("No arrow was drawn. Let go over the box of the effect.");
    }
    net.redraw();
  }

  function cancel() { press = null; from = null; flash = []; if (net) { net.redraw(); } }

  function pick(column, line, e) {
    if (column !== undefined) {
      const columns = e.shiftKey || e.ctrlKey || e.metaKey ? added(data.selected.columns, column) : [column];
      select({ columns, arrow: null });
    } else if (line) selectLine(line);
    else if (data.selected.columns.length || data.selected.arrow || link) select({ columns: [], arrow: null });
  }

  function selectLine(l) {
    select({ columns: [], arrow: l.kind === "arrow" ? l.ends : null }, l.kind === "arrow" ? null : lineId(l));
  }

  // `other` is a line other than an arrow. Python need not know that this line is selected.
  function select(selected, other = null) {
    if (same(selected, data.selected) && same(link, other)) return;
    link = other;
    data.selected = selected;
    act({ do: "select", ...selected });
    nodes.update(data.nodes.map(box));
    buttons();
    tell(selectionText(data, link));
  }

  function keep() {
    const at = Object.fromEntries(Object.entries(net.getPositions()).map(([n, p]) => [n, [p.x, p.y]]));
    act({ do: "move", at });
    tell("Moved. The project keeps the new layout.");
  }

  // A column from the tray is placed where it is dropped, else at the free point nearest to the middle of the view.
  function bring(column, at) {
    const [from, to] = [net.DOMtoCanvas({ x: 0, y: 0 }), net.DOMtoCanvas({ x: host.clientWidth, y: host.clientHeight })];
    const coming = waiting.filter((a) => a.do === "bring").map(({ at: [x, y] }) => ({ left: x - 95, right: x + 95, top: y - 30, bottom: y + 30 }));
    const [x, y] = at ? [at.x, at.y] : freePoint(from, to, [...nodes.getIds().map((n) => net.getBoundingBox(n)), ...coming]);
    data.tray = data.tray.filter((n) => n !== column);
    typed.value = "";
    showTray(tray, data.tray, data.labels);
    act({ do: "bring", column, at: [Math.round(x), Math.round(y)] });
    look([x, y]);
    typed.focus({ preventScroll: true });
  }

  function hover(at) {
    const column = at ? net.getNodeAt(at) : undefined;
    const line = at && column === undefined ? lineUnder(at) : null;
    host.style.cursor = column !== undefined ? (mode === "move" ? "move" : "crosshair") : line ? "pointer" : "default";
    if (same(line && lineId(line), over)) return;
    over = line && lineId(line);
    say.textContent = line ? lineText(line) : shown;
    say.classList.remove("bad");
  }

  // The path that the arrow would close into a cycle, as Python would find it.
  function refusal(...ends) {
    const past = outOfTime(data, ends), [cause, effect] = meant(data, ends);
    if (past) return past;
    const group = [cause, effect].find((n) => n in data.groups);
    if (group !== undefined) return "Open " + group + " first: arrows link columns, not groups.";
    if (data.arrows.some((a) => a[0] === cause && a[1] === effect)) return name([cause, effect]) + " is drawn already.";
    const walk = closed(data.arrows, cause, effect);
    if (!walk) return null;
    flash = walk.slice(1).map((m, k) => [walk[k], m]);
    return "Refused: " + name([cause, effect]) + " would close the cycle " + [cause, ...walk].join(" → ") + ".";
  }

  function draw(...ends) {
    flash = [];
    const bad = refusal(...ends), [cause, effect] = meant(data, ends);
    if (bad) { tell(bad + " Nothing was drawn.", true); return; }
    data.arrows.push([cause, effect]);
    data.edges.push({ from: cause, to: effect });
    net.redraw();
    act({ do: "draw", arrow: ends });
    tell(name([cause, effect]) + " is drawn.");
  }

  function erase() {
    const { arrow, columns } = data.selected;
    if (link) {
      act({ do: "unlink", link });
      link = null;
    } else if (arrow) {
      data.edges = data.edges.filter((e) => !same([e.from, e.to], arrow));
      data.arrows = data.arrows.filter((a) => !same(a, arrow));
      data.selected = { columns: [], arrow: null };
      net.redraw();
      act({ do: "erase", arrows: [arrow] });
      tell(name(arrow) + " is erased. Undo restores it.");
    } else if (columns.length) {
      const gone = data.arrows.filter((a) => columns.includes(a[0]) || columns.includes(a[1]));
      if (gone.length) act({ do: "erase", arrows: gone });
      tell(erasedText(columns, gone));
    } else tell("Select an arrow first: click it.");
    buttons();
  }

  // The next box in a direction; if no box is selected, the main column of the drawing.
  function nextTo(column, dx, dy) {
    const all = net.getPositions();
    if (column in all) return nextBox(all, column, dx, dy);
    return data.centre in all ? data.centre : nodes.getIds()[0];
  }

  // Arrow keys go from box to box (with Shift they add the box to the selection); Enter begins an arrow, and a second
  // Enter draws it to another box.
  function walk(e, k) {
    const step = { arrowleft: [-1, 0], arrowright: [1, 0], arrowup: [0, -1], arrowdown: [0, 1] }[k];
    const columns = data.selected.columns, last = columns.at(-1);
    if (step) {
      const next = nextTo(last, ...step);
      if (next !== null && next !== undefined) {
        select({ columns: e.shiftKey ? added(columns, next) : [next], arrow: null });
        sight();
        if (from) tell("From " + from + " to " + next + ": press Enter to draw the arrow or Escape to stop.");
      } else tell("There is no further box in that direction.");
    } else if (last in data.groups) regroup();
    else if (last === undefined) tell("Use the arrow keys to go to a box first.");
    else if (!from || from === last) {
      from = last;
      tell("From " + last + " to …: use the arrow keys to go to the effect, then press Enter.");
    } else {
      const cause = from;
      from = null;
      const arrow = meant(data, [cause, last]);
      if (data.arrows.some((a) => same(a, arrow))) select({ columns: [], arrow });
      else draw(cause, last);
    }
  }

  // Open or close the selected group, or make a group of the selected columns.
  function regroup() {
    const group = groupOf(data), columns = data.selected.columns;
    if (group !== null) act({ do: "toggle", group });
    else act({ do: "group", columns, name: groupName(data, naming.value) });
    naming.value = "";
  }

  function key(e) {
    const ctrl = e.ctrlKey || e.metaKey, k = e.key.toLowerCase(), what = command(e);
    if (k === "escape") { cancel(); select({ columns: [], arrow: null }); }
    if (k === "enter" || (k.startsWith("arrow") && !ctrl && !e.altKey)) {
      e.preventDefault();
      e.stopPropagation();
      walk(e, k);
      return;
    }
    if (!what) return;
    e.preventDefault();
    e.stopPropagation();
    $(`[data-do=${what}]`).click();
  }

  const boundaries = () => Object.fromEntries(nodes.getIds().map((n) => [n, net.getBoundingBox(n)]));

  function underlay(ctx) {
    ctx.save();
    drawSides(ctx, sides(data, boundaries()), [net.DOMtoCanvas({ x: 0, y: 0 }), net.DOMtoCanvas({ x: host.clientWidth, y: 0 })],
      net.getScale(), ink);
    for (const l of lines()) drawLine(ctx, l, isChosen(l), ink);
    ctx.restore();
  }

  function overlay(ctx) {
    ctx.save();
    ctx.lineCap = "round";
    const drawn = flash.filter(([a, b]) => nodes.get(a) && nodes.get(b));
    flashes(ctx, drawn.map(([a, b]) => [net.getPosition(a), net.getPosition(b)]), ink);
    if (press && press.moved && !press.move && press.column !== undefined) {
      const ends = press.target !== undefined && press.target !== press.column;
      const box = ends ? net.getBoundingBox(press.target) : null;
      draft(ctx, net.getPosition(press.column), net.DOMtoCanvas(press.now), box, press.bad, ink);
    }
    ctx.restore();
    mapped = showMap(map, net, data, ink);
  }

  // --- buttons and text ---------------------------------------------------------------------------------------
  const buttons = () => { showButtons(parent, data, mode, link); showChoices(finder, data, link); };

  function describe() {
    host.setAttribute("aria-label", data.alt);
    showTray(tray, data.tray, data.labels);
    showItems($(".told"), data.told);
    const texts = listed(data);
    if (same(lifted, texts)) return;
    lifted = texts;
    showItems(list, texts.map((text) => ({ text })));
    if (!shown) tell(data.hint);
  }

  const does = {
    erase, fit: () => fit(true), in: () => zoom(1.25), out: () => zoom(0.8),
    share: () => act({ do: "share", pair: data.selected.columns }),
    group: regroup, ungroup: () => act({ do: "ungroup", group: groupOf(data) }),
    together: () => act({ do: "together", columns: data.selected.columns }),
    apart: () => act({ do: "separate", columns: data.selected.columns }),
    undo: () => act({ do: "undo" }), redo: () => act({ do: "redo" }), arrange: () => act({ do: "arrange" }),
    full: enlarge,
  };
  root.addEventListener("fullscreenchange", enlarged);
  for (const kind of ["pointerdown", "pointermove"]) map.addEventListener(kind, (e) => {
    if (!mapped || !e.buttons) return;
    map.setPointerCapture(e.pointerId);
    const corner = map.getBoundingClientRect(), { scale, left, top } = mapped;
    const position = { x: left + (e.clientX - corner.left) / scale, y: top + (e.clientY - corner.top) / scale };
    net.moveTo({ position, scale: net.getScale(), animation: false });
  });
  finder.addEventListener("change", () => {
    const line = lines().find((l) => JSON.stringify(lineId(l)) === finder.value);
    if (line) { selectLine(line); look(middleOf(line.path)); }
  });
  finder.addEventListener("keydown", (e) => { if (command(e) === "erase") erase(); });
  naming.addEventListener("keydown", (e) => { if (e.key === "Enter") regroup(); });
  typed.addEventListener("input", () => showTray(tray, data.tray, data.labels));
  typed.addEventListener("keydown", (e) => {
    const found = matching(data.tray, typed.value, data.labels);
    if (e.key === "Enter" && typed.value && found.length) bring(found[0]);
    e.stopPropagation();
  });
  tray.addEventListener("dragstart", (e) => e.dataTransfer.setData("text/plain", e.target.dataset.bring));
  root.addEventListener("click", (e) => {
    const b = e.target.closest("button");
    if (!b || b.disabled || !data) return;
    if (b.dataset.mode) {
      mode = b.dataset.mode;
      buttons();
      tell(mode === "move" ? "Drag a box to move it." : data.hint);
    } else if (b.dataset.do) does[b.dataset.do]();
    else if (b.dataset.bring !== undefined) bring(b.dataset.bring);
    else if (b.dataset.role !== undefined && data.selected.columns.length === 1) {
      act({ do: "role", column: data.selected.columns[0], role: b.dataset.role || null });
    }
  });

  function end() {
    clearTimeout(timer);
    clearTimeout(clears);
    if (watch) watch.disconnect();
    if (net) net.destroy();
    net = null;
  }
  return { take, end };
}
