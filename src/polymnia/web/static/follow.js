// Follow on the history page: asks for new rows when the server says that there are some.
(() => {
  "use strict";
  const MAX_ROWS = 200, TOP = 160, SETTING = "polymnia.follow";
  const list = document.getElementById("fresh");
  if (!list) return;
  const button = document.getElementById("follow");
  const pill = document.getElementById("news");
  const heading = document.getElementById("fresh-h");
  let events = null;
  let isLoading = false;
  let newest = 0; // the newest change that the server told of

  const last = () => Number(list.firstElementChild?.dataset.change || list.dataset.last);
  // Rows that are being read do not move: a button says that there are new ones.
  const isReading = () => scrollY > TOP || document.querySelector("#main .chg:hover, #main .chg:focus-within");

  async function load() {
    if (isLoading) return;
    isLoading = true;
    pill.hidden = true;
    const url = new URL(location.href);
    url.searchParams.set("after", String(last()));
    const asked = newest;
    try {
      await htmx.ajax("GET", url.pathname + url.search, { target: list, swap: "afterbegin" });
    } finally {
      isLoading = false;
    }
    // Changes that the filters hide are not asked for again.
    if (asked > last()) list.dataset.last = String(asked);
    heading.hidden = !list.children.length;
    for (const row of [...list.children].slice(MAX_ROWS)) row.remove();
    tell();
  }

  function tell() {
    if (newest <= Math.max(last(), Number(list.dataset.last))) return;
    if (isReading()) pill.hidden = false; else load();
  }

  function follow(isOn) {
    button.setAttribute("aria-pressed", String(isOn));
    try { localStorage.setItem(SETTING, isOn ? "on" : "off"); } catch { /* refused */ }
    events?.close();
    events = null;
    if (!isOn) { pill.hidden = true; return; }
    events = new EventSource(list.dataset.events);
    events.addEventListener("message", (event) => { newest = Math.max(newest, JSON.parse(event.data).last); tell(); });
    // What happened while the connection was lost is asked for when it is back.
    events.addEventListener("open", load);
    events.addEventListener("error", () => { if (events.readyState === EventSource.CLOSED) follow(false); });
  }

  button.hidden = false;
  button.addEventListener("click", () => follow(!events));
  pill.addEventListener("click", () => { scrollTo(0, 0); load(); });
  addEventListener("scroll", () => { if (!pill.hidden && !isReading()) load(); }, { passive: true });
  addEventListener("pagehide", () => events?.close());
  let wasOn = false;
  try { wasOn = localStorage.getItem(SETTING) === "on"; } catch { /* refused */ }
  if (wasOn) follow(true);
})();
