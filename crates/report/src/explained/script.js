"use strict";
// Links the lines of a loop nest with their code: both carry the numbers of the lines in data-n.
(() => {
  let shown = null;

  const clear = () => {
    if (!shown) return;
    for (const element of shown.querySelectorAll(".on")) element.classList.remove("on");
    shown = null;
  };

  // Scrolls a box so that an element is visible in it; the page stays where it is.
  const reveal = (element) => {
    const box = element.closest(".box");
    const at = element.getBoundingClientRect().top - box.getBoundingClientRect().top;
    if (at < 0 || at + Math.min(element.offsetHeight, 60) > box.clientHeight) box.scrollTop += at - box.clientHeight / 4;
  };

  const show = (element) => {
    clear();
    shown = element.closest(".kernel");
    const own = element.closest(".box");
    const numbers = element.dataset.n.split(" ");
    // A line of the nest shows all of its code; code shows the lines that it belongs to.
    const found = [...shown.querySelectorAll("[data-n]")].filter((other) =>
      other.closest(".box") !== own && other.dataset.n.split(" ").some((number) => numbers.includes(number)));
    element.classList.add("on");
    for (const other of found) other.classList.add("on");
    if (found.length > 0) reveal(found[0]);
  };

  for (const [event, leave] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
    document.addEventListener(event, (at) => {
      const element = at.target.closest("[data-n]");
      if (element) show(element);
    });
    document.addEventListener(leave, (at) => {
      if (at.target.closest("[data-n]")) clear();
    });
  }

  // A link to a kernel opens it.
  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) {
      target.open = true;
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", open);
  open();
})();
