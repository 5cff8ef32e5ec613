// Follow on the history page: asks every two seconds for the changes that it does not show yet.
(() => {
  "use strict";
  const MAX_ROWS = 200, TOP = 160, INTERVAL_MS = 2000, SETTING = "polymnia.follow";
  const list = document.getElementById("fresh");
  if (!list) return;
  const button = document.getElementById("follow");
  const pill = document.getElementById("news");
  const heading = document.getElementById("fresh-h");
  let timer = null;
  let isLoading = false;

  // Rows that are being read do not move: a button says that there are new ones.
  const isReading = () => scrollY > TOP || document.querySelector("#main .chg:hover, #main .chg:focus-within");

  async function load(isAsked) {
    if (isLoading || (document.hidden && !isAsked)) return;
    isLoading = true;
    const url = new URL(location.href);
    url.searchParams.set("after", list.firstElementChild?.dataset.change || list.dataset.last);
    try {
      const response = await fetch(url, { headers: { "HX-Request": "true" } });
      if (!response.ok) { follow(false); return; }
      const rows = await response.text();
      const hasRows = rows.includes("<li");
      pill.hidden = !hasRows || isAsked || !isReading();
      if (!hasRows || !pill.hidden) return;
      list.insertAdjacentHTML("afterbegin", rows);
      htmx.process(list);
      heading.hidden = false;
      for (const row of [...list.children].slice(MAX_ROWS)) row.remove();
    } catch { /* the server is away: the next request may find it */
    } finally {
      isLoading = false;
    }
  }

  function follow(isOn) {
    button.setAttribute("aria-pressed", String(isOn));
    try { localStorage.setItem(SETTING, isOn ? "on" : "off"); } catch { /* refused */ }
    clearInterval(timer);
    timer = isOn ? setInterval(load, INTERVAL_MS) : null;
    if (isOn) load(); else pill.hidden = true;
  }

  button.hidden = false;
  button.addEventListener("click", () => follow(!timer));
  pill.addEventListener("click", () => { scrollTo(0, 0); load(true); });
  addEventListener("scroll", () => { if (!pill.hidden && !isReading()) load(true); }, { passive: true });
  let wasOn = false;
  try { wasOn = localStorage.getItem(SETTING) === "on"; } catch { /* refused */ }
  if (wasOn) follow(true);
})();
