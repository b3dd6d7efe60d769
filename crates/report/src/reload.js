(() => {
  const SECONDS = 2;
  const key = "warploom " + location.pathname;
  const all = (what) => Array.from(document.querySelectorAll(what));
  const boxes = () => all(".wide, .tall, pre");
  const name = (details) => details.querySelector("summary").textContent;
  const keep = () => {
    const focus = document.activeElement && document.activeElement.getAttribute("href");
    const open = all("details[open]").map(name);
    const inside = boxes().map((box) => [box.scrollLeft, box.scrollTop]);
    sessionStorage.setItem(key, JSON.stringify({ x: scrollX, y: scrollY, open, inside, focus }));
  };
  const restore = () => {
    const kept = JSON.parse(sessionStorage.getItem(key));
    if (!kept) return;
    all("details").forEach((details) => { details.open = kept.open.includes(name(details)); });
    boxes().forEach((box, at) => { [box.scrollLeft, box.scrollTop] = kept.inside[at] || [0, 0]; });
    const focus = kept.focus && all("a").find((link) => link.getAttribute("href") === kept.focus);
    if (focus) focus.focus({ preventScroll: true });
    scrollTo(kept.x, kept.y);
  };
  history.scrollRestoration = "manual";
  try { restore(); } catch (error) { sessionStorage.removeItem(key); }
  setTimeout(() => { keep(); location.reload(); }, 1000 * SECONDS);
})();
