"use strict";
(() => {
  const list = document.getElementById("cases");
  const cases = [...list.children];
  const form = document.querySelector(".filters");
  const words = document.getElementById("words");
  const shown = document.getElementById("shown");
  const fold = document.getElementById("fold");
  const texts = new Map();
  const text = (one) => {
    if (!texts.has(one)) texts.set(one, one.textContent.toLowerCase());
    return texts.get(one);
  };
  const filter = () => {
    const wanted = words.value.trim().toLowerCase();
    const kind = form.elements.kind.value;
    // Absent where the run was held against no baseline.
    const group = form.elements.group ? form.elements.group.value : "";
    let count = 0;
    for (const one of cases) {
      const stands = !group || one.dataset.a === group;
      const fits = stands && (!kind || one.classList.contains(kind)) && (!wanted || text(one).includes(wanted));
      one.hidden = !fits;
      count += fits ? 1 : 0;
    }
    shown.textContent = count === 1 ? "1 case" : `${count} cases`;
  };
  const value = {
    o: (one) => Number(one.dataset.o),
    n: (one) => one.querySelector(".name").textContent,
    s: (one) => parseFloat(one.dataset.s),
    t: (one) => Number(one.dataset.t),
    m: (one) => parseFloat(one.dataset.m),
  };
  // The buttons of the filter are in the order of the changes, worst first.
  const groups = form.elements.group ? [...form.elements.group].map((one) => one.value) : [];
  value.a = (one) => groups.indexOf(one.dataset.a);
  value.r = (one) => Number(one.dataset.r);
  const missing = (found) => typeof found === "number" && Number.isNaN(found);
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
  const buttons = [...document.querySelectorAll("#sorting button")];
  const sort = (button) => {
    const was = button.getAttribute("aria-pressed") === "true";
    const up = was && !button.classList.contains("up");
    for (const other of buttons) {
      other.setAttribute("aria-pressed", String(other === button));
      other.classList.remove("up");
    }
    button.classList.toggle("up", up);
    const by = button.dataset.by === "o" ? "r" : button.dataset.by;
    const key = new Map(cases.map((one) => [one, value[by](one)]));
    const order = (a, b) => {
      const [x, y] = [key.get(a), key.get(b)];
      // What has no value comes last in either direction.
      if (missing(x) || missing(y)) return missing(x) - missing(y) || value.o(a) - value.o(b);
      return (up ? compare(y, x) : compare(x, y)) || value.o(a) - value.o(b);
    };
    list.append(...[...cases].sort(order));
  };
  for (const button of buttons) button.addEventListener("click", () => sort(button));
  fold.addEventListener("click", () => {
    const open = fold.textContent === "Open all";
    for (const one of cases) one.open = open && !one.hidden;
    fold.textContent = open ? "Close all" : "Open all";
  });
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  const linked = location.hash && document.getElementById(location.hash.slice(1));
  if (linked && cases.includes(linked)) linked.open = true;
  form.hidden = false;
  const finder = form.parentElement;
  finder.hidden = false;
  // On a phone the failures come before the filters.
  finder.open = !matchMedia("(max-width: 40rem)").matches;
  filter();
  sort(buttons[0]);
})();
