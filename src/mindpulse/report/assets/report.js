// A read-out under the pointer or the arrow keys. The report is complete without it.
for (const plot of document.querySelectorAll(".plot[data-points]")) {
  const points = JSON.parse(plot.dataset.points);
  const readout = Object.assign(document.createElement("div"), { className: "readout", hidden: true });
  const cursor = Object.assign(document.createElement("div"), { className: "cursor", hidden: true });
  readout.setAttribute("role", "status");
  plot.append(cursor, readout);
  let at = points.length - 1;
  const show = (index) => {
    at = Math.max(0, Math.min(points.length - 1, index));
    const [across, up, step, value] = points[at];
    cursor.hidden = readout.hidden = false;
    cursor.style.left = `${100 * across}%`;
    cursor.style.setProperty("--up", `${100 * (up ?? 1)}%`);
    readout.textContent = `${step.toLocaleString("en")}: ${value}`;
    const half = (50 * readout.offsetWidth) / plot.clientWidth;
    readout.style.left = `${Math.max(half, Math.min(100 - half, 100 * across))}%`;
  };
  const hide = () => { cursor.hidden = readout.hidden = true; };
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    const across = (event.clientX - box.left) / box.width;
    let low = 0, high = points.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (points[middle][0] < across) low = middle; else high = middle;
    }
    show(across - points[low][0] < points[high][0] - across ? low : high);
  });
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("focus", () => show(at));
  plot.addEventListener("keydown", (event) => {
    const far = Math.max(1, Math.round(points.length / 20));
    const move = { ArrowLeft: -1, ArrowRight: 1, PageDown: -far, PageUp: far, Home: -Infinity, End: Infinity }[event.key];
    if (move === undefined) return;
    event.preventDefault();
    show(at + move);
  });
}
