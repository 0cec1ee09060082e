// Makes the pages handier: rows by keyboard, sessions in a panel, more rows on scrolling, live
// runs. Everything it does can be done by links and forms too. HTML comes escaped from the
// server; nothing is evaluated.
"use strict";

const find = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

const parsed = (html) => new DOMParser().parseFromString(html, "text/html");

async function fetched(address) {
  const response = await fetch(address, { headers: { Accept: "text/html" } });
  const page = parsed(await response.text());
  if (!response.ok) throw new Error(find(".lead", page)?.textContent ?? `status ${response.status}`);
  return page;
}

function grows(table, row) {
  table.tBodies[0].append(document.importNode(row, true));
}

// Rows

let current = null;

function select(row, focus = true) {
  current?.classList.remove("current");
  current = row;
  row?.classList.add("current");
  if (row && focus) {
    find("a", row).focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }
}

function move(step) {
  const rows = all("[data-rows] tbody tr[data-href]");
  const at = rows.indexOf(current);
  select(rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + step))]);
}

function open(row) {
  if (find("#panel") && row.closest(".sessions")) openPanel(row.dataset.href);
  else location.assign(row.dataset.href);
}

document.addEventListener("click", (event) => {
  const row = event.target.closest("[data-rows] tr[data-href]");
  const modified = event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey;
  if (!row || modified || String(getSelection())) return;
  const link = event.target.closest("a");
  if (link && !find("#panel")) return;
  event.preventDefault();
  select(row, false);
  open(row);
});

// The panel

const panel = find("#panel");
let asked = 0;

// The address of this page with the panel of that session open, or of none.
function addressWith(session) {
  const address = new URL(location);
  if (session) address.searchParams.set("session", session); else address.searchParams.delete("session");
  return address;
}

const openedSession = () => new URL(location).searchParams.get("session");

// Opens the panel, whose address the browser then shows: a reload or a bookmark opens it again, and
// going back closes it.
function openPanel(address) {
  const there = addressWith(decodeURIComponent(address.slice("/sessions/".length)));
  if (openedSession()) history.replaceState(history.state, "", there);
  else history.pushState({ panel: true }, "", there);
  showPanel(address);
}

async function showPanel(address) {
  const body = find(".panel-body", panel);
  const mine = ++asked;
  find(".whole", panel).href = address;
  body.textContent = "Loading …";
  if (!panel.open) panel.showModal();
  panel.scrollTop = 0;
  try {
    const page = await fetched(`${address}/panel`);
    if (mine === asked) body.replaceChildren(...[...page.body.childNodes].map((node) => document.importNode(node, true)));
  } catch (error) {
    if (mine === asked) body.textContent = `This session cannot be shown: ${error.message}`;
  }
}

if (panel) {
  find(".close", panel).addEventListener("click", (event) => { event.preventDefault(); panel.close(); });
  panel.addEventListener("click", (event) => { if (event.target === panel) panel.close(); });
  panel.addEventListener("close", () => {
    // The event comes later than the closing: by then going forward may have opened it again.
    if (panel.open) return;
    asked += 1;
    if (current) find("a", current).focus();
    if (!openedSession()) return;
    if (history.state?.panel) history.back(); else history.replaceState(null, "", addressWith(null));
  });
  addEventListener("popstate", () => {
    const session = openedSession();
    if (session) showPanel(`/sessions/${encodeURIComponent(session)}`); else if (panel.open) panel.close();
  });
  // The server has opened it beside the list; here it lies over the list.
  if (panel.open) {
    panel.removeAttribute("open");
    panel.showModal();
  }
}

// Asking for a grade by the model

document.addEventListener("submit", async (event) => {
  const form = event.target.closest(".grading");
  if (!form) return;
  event.preventDefault();
  const [button, said] = [find("button", form), find("[role=status]", form)];
  button.disabled = true;
  said.textContent = "Asking …";
  try {
    const response = await fetch(form.getAttribute("action"), { method: "POST" });
    const answer = await response.json().catch(() => ({}));
    said.textContent = response.ok ? "Queued; reload in a while to see the grade." : answer.detail ?? answer.title ?? `status ${response.status}`;
    button.disabled = response.ok;
  } catch (error) {
    said.textContent = `No answer: ${error.message}`;
    button.disabled = false;
  }
});

// Keys

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const writing = event.target.closest("input, select, textarea");
  if (writing) {
    if (event.key === "Escape") {
      event.preventDefault(); // Else it would empty a search field, or close the panel as well.
      writing.blur();
    }
    return;
  }
  const search = find("input[type=search]");
  const button = all("form[data-keys] button[data-key]").find((one) => one.dataset.key.split(" ").includes(event.key.toLowerCase()));
  if (button && !event.repeat) {
    event.preventDefault();
    button.form.requestSubmit(button);
  } else if (event.key === "/" && search && !panel?.open) {
    event.preventDefault();
    search.focus();
    search.select();
  } else if (event.key === "j" || event.key === "k") {
    move(event.key === "j" ? 1 : -1);
    if (panel?.open && current) openPanel(current.dataset.href);
  } else if (event.key === "Enter" && current && !panel?.open && (event.target === document.body || event.target === document.getElementById("main"))) {
    open(current);
  }
});

// Filters apply when they are chosen

const filters = find("form.filters");
filters?.addEventListener("change", (event) => { if (event.target.matches("select")) filters.requestSubmit(); });

// More rows on scrolling

const pager = find(".sessions") && find(".pager");
if (pager && "IntersectionObserver" in window) {
  let loading = false;
  const watch = new IntersectionObserver(async (seen) => {
    const link = find("a[rel=next]", pager);
    // On a busy machine several come at once; the last one holds.
    if (!seen.at(-1).isIntersecting || !link || loading) return;
    loading = true;
    try {
      const page = await fetched(link.href);
      for (const row of all(".sessions tbody tr", page)) grows(find(".sessions"), row);
      const next = find(".pager a[rel=next]", page);
      if (next) link.href = next.getAttribute("href"); else link.remove();
      // Tell again whether the end is in sight.
      watch.unobserve(pager);
      watch.observe(pager);
    } catch {
      watch.disconnect(); // The link is still there.
    } finally {
      loading = false;
    }
  }, { rootMargin: "600px" });
  watch.observe(pager);
}

// A run that goes on

const progress = find("#progress[data-live]");
if (progress) {
  const said = find("#said");
  const events = new EventSource(progress.dataset.live);
  events.addEventListener("progress", ({ data }) => progress.replaceChildren(...parsed(data).body.children));
  events.addEventListener("said", ({ data }) => { if (said.textContent !== data) said.textContent = data; });
  events.addEventListener("case", ({ data }) => {
    const row = document.importNode(find("tr", parsed(`<table>${data}</table>`)), true);
    // A case that is run again may move, because those that did not pass come first.
    const old = all("#cases tbody tr").find((other) => other.dataset.href === row.dataset.href);
    if (old) old.remove();
    else row.classList.add("new");
    const order = Number(row.dataset.order);
    const next = all("#cases tbody tr").find((other) => Number(other.dataset.order) > order);
    find("#cases tbody").insertBefore(row, next ?? null);
  });
  events.addEventListener("end", () => events.close());
  events.addEventListener("error", () => { if (events.readyState === EventSource.CLOSED) said.textContent += ". Live updates have ended; reload the page."; });
}
