// The live page: asks for new rows when the server says that there are some, unless it is paused.
(() => {
  "use strict";
  const MAX_ROWS = 200;
  const list = document.getElementById("live");
  if (!list) return;
  const button = document.getElementById("pause");
  const state = document.getElementById("live-state");
  let isPaused = false;
  let isLoading = false;
  let waiting = 0;
  let newest = 0; // the newest change that the server told of
  let isBehind = false; // there may be changes that it did not tell of
  let isKeptBack = false; // an answer came after the list was held

  const isHeld = () => isPaused || list.matches(":hover") || list.contains(document.activeElement);
  const last = () => Number(list.querySelector("[data-change]")?.dataset.change || 0);

  function show() {
    button.textContent = isPaused ? `Resume${waiting ? `, ${waiting} waiting` : ""}` : waiting ? `Pause, ${waiting} waiting` : "Pause";
    button.setAttribute("aria-pressed", String(isPaused));
  }

  function say(text) {
    state.hidden = !text;
    state.lastElementChild.textContent = text;
  }

  async function load() {
    if (isLoading || isHeld() || !(waiting || isBehind)) return;
    isLoading = true;
    isBehind = isKeptBack = false;
    const asked = waiting;
    const url = new URL(list.dataset.rows, location.href);
    url.searchParams.set("after", String(last()));
    try {
      await htmx.ajax("GET", url.pathname + url.search, { target: list, swap: "afterbegin" });
    } finally {
      isLoading = false;
    }
    for (const row of [...list.children].slice(MAX_ROWS)) row.remove();
    // The answer may have had what was told meanwhile.
    if (!isKeptBack) waiting = Math.min(waiting - asked, Math.max(0, newest - last()));
    show();
    load();
  }

  list.addEventListener("htmx:beforeSwap", (event) => {
    if (!isHeld()) return;
    event.detail.shouldSwap = false;
    isBehind = isKeptBack = true;
  });

  button.hidden = false;
  document.getElementById("reload").hidden = true;
  button.addEventListener("click", () => {
    isPaused = !isPaused;
    say(isPaused ? `Paused at ${new Date().toLocaleTimeString()}. Changes are kept and appear when you resume.` : "");
    show();
    load();
  });
  list.addEventListener("mouseleave", () => { load(); });
  list.addEventListener("focusout", () => { setTimeout(load, 0); });

  const events = new EventSource(list.dataset.events);
  events.addEventListener("message", (event) => {
    const news = JSON.parse(event.data);
    if (news.last <= last()) return; // shown already
    newest = Math.max(newest, news.last);
    waiting = Math.min(waiting + news.count, news.last - last());
    show();
    load();
  });
  // Whatever happened while the connection was lost is asked for when it is back.
  events.addEventListener("open", () => { say(""); isBehind = true; load(); });
  events.addEventListener("error", () => {
    say(events.readyState === EventSource.CLOSED ? "The connection has ended. Reload the page to go on." : "The connection was lost; trying again.");
  });
  addEventListener("pagehide", () => events.close());
})();
