// An SVG picture in a wide or a narrow form, whichever fits its frame, with buttons that save it as SVG and as PNG.
const shown = new WeakMap();

const dark = (host) => {
  const [r, g, b] = (getComputedStyle(host).getPropertyValue("--st-background-color").match(/[\da-f]{2}/gi) || ["ff", "ff", "ff"])
    .map((part) => parseInt(part, 16));
  return 0.3 * r + 0.6 * g + 0.1 * b < 128;
};

const save = (blob, name) => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 5000);
};

const dress = (svg, scheme) => {
  svg.classList.remove("light", "dark");
  svg.classList.add(scheme);
};

const text = (svg) => {
  const copy = svg.cloneNode(true);
  dress(copy, "light");
  copy.removeAttribute("style");
  return new XMLSerializer().serializeToString(copy);
};

const png = async (svg, name) => {
  const [, , wide, high] = svg.getAttribute("viewBox").split(" ").map(Number);
  const image = new Image();
  const url = URL.createObjectURL(new Blob([text(svg)], { type: "image/svg+xml" }));
  await new Promise((done, failed) => { image.onload = done; image.onerror = failed; image.src = url; });
  const canvas = document.createElement("canvas");
  const scale = Math.min(2, 8000 / Math.max(wide, high));
  canvas.width = wide * scale;
  canvas.height = high * scale;
  const paper = canvas.getContext("2d");
  paper.fillStyle = "#ffffff";
  paper.fillRect(0, 0, canvas.width, canvas.height);
  paper.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(url);
  canvas.toBlob((blob) => save(blob, name + ".png"), "image/png");
};

export default function ({ data, parentElement }) {
  const host = parentElement.querySelector(".picture");
  const [asSvg, asPng] = parentElement.querySelectorAll("button");
  const draw = () => {
    const narrow = data.narrow && host.clientWidth < data.below;
    const parsed = new DOMParser().parseFromString(narrow ? data.narrow : data.wide, "image/svg+xml");
    const svg = document.importNode(parsed.documentElement, true);
    dress(svg, dark(host) ? "dark" : "light");
    svg.style.width = "100%";
    svg.style.height = "auto";
    svg.style.maxWidth = svg.getAttribute("width") + "px";
    if (svg.classList.contains("release")) {
      svg.style.maxHeight = "80vh"; // at most one screen, for any drawing
      if (host.clientWidth < 700) svg.style.minWidth = 0.75 * svg.getAttribute("width") + "px"; // text stays legible
    }
    host.replaceChildren(svg);
    host.tabIndex = host.scrollWidth > host.clientWidth ? 0 : -1; // then arrow keys scroll it
    asSvg.onclick = () => save(new Blob([text(svg)], { type: "image/svg+xml" }), data.name + ".svg");
    asPng.onclick = () => png(svg, data.name);
  };
  shown.get(parentElement)?.disconnect();
  let wide = -1;
  const watch = new ResizeObserver(() => {
    if (host.clientWidth !== wide) { wide = host.clientWidth; draw(); }
  });
  watch.observe(host);
  shown.set(parentElement, watch);
  draw();
  return () => watch.disconnect();
}
