const lists = new WeakMap();
let opened = null;

const KINDS = [["categorical", "Categories"], ["ordinal", "Ordered categories"], ["numeric", "Numbers in bins"],
  ["date", "Dates"], ["identifier", "Identifier: never read"]];
const ORDERS = [["", "2024-01-31"], ["dmy", "31.1.2024 or 31 Jan 2024"], ["mdy", "1/31/2024 or Jan 31, 2024"],
  ["ymd", "2024/1/31 or 20240131"]];
const DOES = [["keep", "Keep"], ["out", "Leave out"], ["person", "Identifies the person"]];

function make(tag, attributes, ...inside) {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes || {}))
    if (value === true) e.setAttribute(key, "");
    else if (value !== false && value != null) e.setAttribute(key, value);
  e.append(...inside.filter((x) => x != null && x !== ""));
  return e;
}

function values(row) {
  const label = (v) => (v.l ? `${v.t} = ${v.l}` : v.t);
  const list = make("ul", { class: "values", "aria-label": row.count });
  list.append(...row.values.map((v) => make("li", {}, label(v))));
  list.append(...row.marks.map((m) => make("li", { class: "mark" }, `${m} counts as empty`)));
  if (row.rest) list.append(make("li", { class: "rest" }, row.rest));
  return list;
}

function head(row, own) {
  const does = make("span", { class: "does", role: "group", "aria-label": `What to do with ${row.name}` });
  for (const [act, label] of DOES.filter(([name]) => row.acts.includes(name))) {
    const button = make("button", { type: "button", "data-act": act, "aria-pressed": String(row.chosen === act) }, label);
    button.addEventListener("click", () => row.chosen === act || own.send({ do: act, name: row.name }));
    does.append(button);
  }
  if (row.form) {
    const button = make("button", { type: "button", "data-act": "change", "aria-expanded": String(own.forms.has(row.name)),
      "aria-label": `Change ${row.name}` }, "Change");
    button.addEventListener("click", () => toggle(row, own));
    does.append(button);
  }
  const about = [row.kind, row.unit, row.label].filter(Boolean).join(" · ");
  return [
    make("div", { class: "line" },
      make("div", { class: "what" }, make("span", { class: "name" }, row.name), " ",
        make("span", { class: "about" }, [row.stage, about].filter(Boolean).join(" · "))), does),
    row.description && make("p", { class: "note" }, row.description),
    row.reason && make("p", { class: "why" }, row.reason),
    row.values.length || row.marks.length ? values(row) : null,
    row.error && make("p", { class: "error", role: "alert" }, row.error),
  ].filter(Boolean);
}

function field(name, label, input, hint, wide) {
  input.name = name;
  const tick = input.type === "checkbox";
  return make("label", { class: [tick && "tick", wide && "wide"].filter(Boolean).join(" ") || null, "data-of": name },
    ...(tick ? [input, label] : [label, input]), hint && make("span", { class: "hint" }, hint));
}

const text = (value, lines) => {
  const e = make(lines ? "textarea" : "input", lines ? {} : { type: "text" });
  e.value = value;
  return e;
};
const tick = (value) => make("input", { type: "checkbox", checked: value });
const choice = (options, value) => {
  const e = make("select", {}, ...options.map(([v, l]) => make("option", { value: v }, l)));
  e.value = value;
  return e;
};

function form(row, own) {
  const f = row.form, made = make("form", { "aria-label": `Describe ${row.name}` });
  made.append(
    field("kind", "Kind", choice(KINDS, f.kind)),
    field("book", "Codebook", choice([["", "None"], ...f.books], f.book), "This declares all of its codes."),
    field("categories", "Values, separated by ;", text(f.categories, true),
      "Quote a value that contains a semicolon. “at most 50” means that the categories are bought from the budget.", true),
    field("edges", "Bins", text(f.edges), ""),
    field("date_order", "Written in the table as", choice(ORDERS, f.date_order), "Dates in ISO format are also read."),
    field("decimals", "Decimals", text(f.decimals)),
    field("marks", "Also count as empty, separated by ;", text(f.marks)),
    field("label", "Label", text(f.label)), field("unit", "Unit", text(f.unit)),
    field("description", "Description", text(f.description, true), "", true),
    field("labels", "Labels of values, one per line", text(f.labels, true), "For example, 1 = male", true),
    field("integer", "Whole numbers", tick(f.integer)), field("missing", "Cells may be empty", tick(f.missing)),
    field("unknown", "Other values count as empty", tick(f.unknown)),
    field("invented", "Release an invented identifier", tick(f.invented)));
  const shows = () => {
    const kind = made.elements.kind.value, names = kind === "categorical" || kind === "ordinal";
    const seen = { book: kind === "categorical", categories: names && !made.elements.book.value,
      edges: kind === "numeric" || kind === "date", date_order: kind === "date", decimals: kind === "numeric", integer: kind === "numeric",
      marks: kind !== "identifier", labels: names, missing: kind !== "identifier", unknown: kind !== "identifier",
      invented: kind === "identifier" };
    for (const [name, is] of Object.entries(seen)) made.querySelector(`[data-of=${name}]`).hidden = !is;
    made.querySelector("[data-of=edges] .hint")?.remove();
    const hint = kind === "date" ? "First day; last day; month, quarter or year" : "0; 18; 40, or “8 bins from 0 to 100”";
    made.querySelector("[data-of=edges]").append(make("span", { class: "hint" }, hint));
  };
  made.addEventListener("change", shows);
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = {};
    for (const e of made.elements) if (e.name) typed[e.name] = e.type === "checkbox" ? e.checked : e.value;
    own.send({ do: "change", name: row.name, typed });
  });
  const cancel = make("button", { type: "button" }, "Cancel");
  cancel.addEventListener("click", () => toggle(row, own));
  made.append(make("div", { class: "wide does" }, make("button", { type: "submit" }, "Apply"), cancel));
  shows();
  return made;
}

function toggle(row, own) {
  const place = own.rows.get(row.name).element, open = own.forms.get(row.name);
  if (open) { open.remove(); own.forms.delete(row.name); }
  else { own.forms.set(row.name, form(row, own)); place.append(own.forms.get(row.name)); }
  const button = place.querySelector("[data-act=change]");
  button?.setAttribute("aria-expanded", String(!open));
  (open ? button : own.forms.get(row.name).elements.kind)?.focus();
}

function draw(row, own) {
  const known = own.rows.get(row.name), plain = JSON.stringify(row);
  if (known && known.plain === plain) return known.element;
  const element = known ? known.element : make("li", { "data-column": row.name, "data-stage": row.stage });
  const active = element.getRootNode().activeElement, focused = element.contains(active) && active.dataset.act;
  if (!row.error || !row.form) own.forms.delete(row.name);
  element.replaceChildren(...head(row, own), ...(own.forms.has(row.name) ? [own.forms.get(row.name)] : []));
  element.dataset.stage = row.stage;
  if (focused) element.querySelector(`[data-act=${focused}]`)?.focus();
  own.rows.set(row.name, { plain, element });
  return element;
}

export default function ({ data, parentElement, setTriggerValue }) {
  const list = parentElement.querySelector(".review");
  if (!lists.has(parentElement)) lists.set(parentElement, { rows: new Map(), forms: new Map() });
  const own = lists.get(parentElement);
  own.send = (act) => setTriggerValue("act", { ...act, at: Date.now() });
  list.setAttribute("aria-label", data.title);
  const wanted = data.rows.map((row) => draw(row, own));
  for (const [name, { element }] of own.rows)
    if (!wanted.includes(element)) { element.remove(); own.rows.delete(name); own.forms.delete(name); }
  wanted.forEach((e, i) => { if (list.children[i] !== e) list.insertBefore(e, list.children[i] || null); });
  if (opened !== data.opened) {
    opened = data.opened;
    document.querySelector('[data-testid="stMain"]')?.scrollTo(0, 0);
  }
}
