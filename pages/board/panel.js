// Everything around the canvas of the drawing board: buttons, lists and sentences.
const name = (arrow) => arrow[0] + " → " + arrow[1];
const MOST = 12;         // boxes that may be selected together
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

// The group that the buttons change: the selected group, or the group of the selected column; null for any other
// selection.
function groupOf(data) {
  const [one, ...more] = data.selected.columns;
  if (one === undefined || more.length) return null;
  return one in data.groups ? one : data.nodes.find((n) => n.id === one)?.group || null;
}

function showButtons(parent, data, mode, link) {
  const $ = (query) => parent.querySelector(query);
  const { columns, arrow } = data.selected;
  const group = groupOf(data), ahead = columns.some((n) => n in data.ahead || data.never.includes(n));
  const closed = ahead || columns.some((n) => n in data.groups);
  const one = columns.length === 1 && !closed ? columns[0] : null;
  const role = one !== null ? data.roles[one] || "" : null;
  parent.querySelectorAll("[data-role]").forEach((b) => {
    b.disabled = one === null;
    b.setAttribute("aria-pressed", String(one !== null && role === b.dataset.role));
  });
  $(".who").textContent = one !== null ? "Role of " + one + ":" : "Role (select a column first):";
  $("[data-do=erase]").disabled = (!arrow && !columns.length && !link) || (closed && !ahead);
  $("[data-do=erase]").textContent = link ? "Delete link" : columns.length ? "Erase its arrows" : "Delete arrow";
  $("[data-do=share]").disabled = columns.length !== 2 || closed;
  for (const what of ["apart", "together"]) $(`[data-do=${what}]`).disabled = columns.length < 2 || closed;
  $("[data-do=group]").textContent = !group ? "Group" : columns[0] in data.groups ? "Open group" : "Close group";
  $("[data-do=group]").disabled = !group && (columns.length < 2 || closed);
  $("[data-do=ungroup]").disabled = !group;
  $(".naming").hidden = columns.length < 2 || closed;
  $("[data-do=undo]").disabled = !data.undo;
  $("[data-do=redo]").disabled = !data.redo;
  parent.querySelectorAll("[data-mode]").forEach((b) => b.setAttribute("aria-pressed", String(b.dataset.mode === mode)));
}

// The name of a new group: the typed name, else the first free number.
function groupName(data, typed) {
  let k = 1;
  while ("Group " + k in data.groups) k++;
  return typed.trim() || "Group " + k;
}

// All lines and groups as text.
function listed(data) {
  const arrows = data.arrows.map((a) => a[0] + " causes " + a[1]);
  const others = linesOf(data).filter((l) => ["share", "together"].includes(l.kind)).map((l) => l.text.split(". ")[0]);
  const groups = data.nodes.filter((n) => n.inside.length).map((n) => "Closed group " + n.id + ": " + n.inside.join(", "));
  return [...arrows, ...others, ...groups];
}

// The field that finds a line: one choice for each line on the drawing.
function showChoices(field, data, link) {
  const lines = linesOf(data);
  const signs = { arrow: " → ", bundle: " → ", share: " ↔ ", apart: " ‖ " };
  const said = (l) => l.kind === "together" ? l.ends.slice(0, -1).join(" ⊗ ") + " → " + l.ends.at(-1) : l.ends.join(signs[l.kind]);
  const options = lines.map((l) => new Option(said(l), JSON.stringify(lineId(l))));
  field.replaceChildren(new Option(lines.length ? "Choose a line" : "No line yet", ""), ...options);
  field.value = JSON.stringify(data.selected.arrow ? [...data.selected.arrow, "arrow"] : link) || "";
  if (field.selectedIndex < 0) field.value = "";
}

function showItems(list, items) {
  list.replaceChildren(...items.map(({ text, bad }) => {
    const item = document.createElement("li");
    item.textContent = text;
    if (bad) item.className = "bad";
    return item;
  }));
}

// The tray: columns that are not on the drawing and that match the typed text.
const MOST_CHIPS = 40;

function matching(names, typed, labels) {
  const part = typed.trim().toLowerCase();
  return names.filter((n) => (labels[n] || n).toLowerCase().includes(part));
}

function showTray(tray, names, labels) {
  const found = matching(names, tray.querySelector("input").value, labels), shown = found.slice(0, MOST_CHIPS);
  tray.hidden = !names.length;
  tray.querySelector("ul").replaceChildren(...shown.map((n) => {
    const item = document.createElement("li"), chip = document.createElement("button");
    chip.textContent = labels[n] || n;
    chip.dataset.bring = n;
    chip.draggable = true;
    item.append(chip);
    return item;
  }));
  const more = found.length - shown.length;
  tray.querySelector(".more").textContent = !found.length && names.length ? "No such column." : more > 0 ? more + " more" : "";
}

// The command bound to a key: erase, undo or redo; null for any other key.
function command(e) {
  const ctrl = e.ctrlKey || e.metaKey, k = e.key.toLowerCase();
  if (k === "delete" || k === "backspace") return "erase";
  if (ctrl && k === "z") return e.shiftKey ? "redo" : "undo";
  return ctrl && k === "y" ? "redo" : null;
}

// The description of a line; for an arrow, it also states the effect of erasing it.
function lineText(l) {
  return l.kind === "arrow" ? name(l.ends) + ". " + (l.without || "") : l.text;
}

function selectionText(data, link) {
  const { columns, arrow } = data.selected, [one, other, ...through] = columns;
  const line = linesOf(data).find((l) => same(lineId(l), arrow ? [...arrow, "arrow"] : link));
  if (line) return (arrow ? "Selected: " : "") + lineText(line);
  if (one in data.groups) {
    const inside = data.groups[one], more = inside.length > 6 ? " and " + (inside.length - 6) + " more" : "";
    return "Selected: " + one + ", a closed group of " + inside.slice(0, 6).join(", ") + more + ". Enter opens it.";
  }
  if (through.length) return "Selected: " + one + " and " + other + ", through " + through.join(", ");
  return columns.length ? "Selected: " + columns.join(" and ") : "Nothing is selected.";
}

// The warning about lines that pass behind a box.
function behindText(lines) {
  if (!lines.length) return "";
  const more = lines.length > 4 ? " and " + (lines.length - 4) + " more" : "";
  return "Easily misread, because they pass behind a box: " + lines.slice(0, 4).join("; ") + more +
    ". Move a box, or arrange by layers.";
}

function erasedText(columns, arrows) {
  const shown = columns.join(" and ");
  if (!arrows.length) return "There is no arrow of " + shown + " to erase, and columns cannot be erased.";
  return "The arrows of " + shown + " are erased: " + arrows.map(name).join(", ") + ". Undo restores them.";
}

// The selected columns and one more, which comes last.
const added = (columns, column) => [...columns.filter((c) => c !== column), column].slice(-MOST);
