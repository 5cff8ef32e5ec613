// Keys, dialogs, toasts, tabs and copy buttons of every page. Pages work without it.
(() => {
  "use strict";
  const TOAST_MS = 20_000;
  const $ = (selector, at = document) => at.querySelector(selector);
  const $$ = (selector, at = document) => [...at.querySelectorAll(selector)];
  const FIELDS = "input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable=true]";

  // ---- keys ----

  const cursor = () => $("[data-row].cursor");

  function moveCursor(step) {
    const rows = $$("[data-row]");
    if (!rows.length) return;
    const at = rows.indexOf(cursor());
    placeCursor(rows[Math.max(0, Math.min(rows.length - 1, at + step))]);
  }

  function placeCursor(row) {
    cursor()?.classList.remove("cursor");
    row.classList.add("cursor");
    ($("a, button", row) || row).focus({ preventScroll: true });
    row.scrollIntoView({ block: "nearest" });
  }

  // Select the row under the cursor and the next one.
  function extendSelection(step) {
    tick(cursor());
    moveCursor(step);
    tick(cursor());
  }

  function tick(row) {
    const box = row && $(".pick input", row);
    if (box && !box.checked) box.click();
  }

  const press = (key, at) => {
    const target = $(`[data-key="${CSS.escape(key)}"]`, at || document);
    target?.click();
    return Boolean(target);
  };
  const ACTIONS = {
    "/": () => { $("#q")?.focus(); $("#q")?.select(); },
    "j": () => press("j") || moveCursor(1),
    "k": () => press("k") || moveCursor(-1),
    "J": () => extendSelection(1),
    "K": () => extendSelection(-1),
    "e": () => press("e", cursor()),
    "w": () => press("w", cursor()),
    "x": () => $(".pick input", cursor() || document)?.click(),
    "Delete": () => press("Delete", cursor()),
    "u": () => press("u"),
    "U": () => press("U"),
    "g": () => ($("main [data-key=g]") || $("[data-key=g]"))?.click(),
    "?": () => $("#keys")?.showModal(),
    "Escape": () => press("Escape"),
  };

  // Keys that mean something on some pages: the buttons there say so.
  const PAGE_KEYS = ["a", "d", "s", "A", "1", "2", "n", "f", "p", "t", "[", "]"];

  // A browser may refuse storage; then the keys stay on.
  const KEYS_SETTING = "polymnia.single-keys";
  let keysOn = true;
  try { keysOn = localStorage.getItem(KEYS_SETTING) !== "off"; } catch { /* refused */ }

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "k") { event.preventDefault(); ACTIONS["/"](); return; }
    const typing = event.target.closest("form[data-edit] textarea");
    if ((event.ctrlKey || event.metaKey) && event.key === "Enter" && typing) { event.preventDefault(); typing.form.requestSubmit(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    const field = event.target.closest(FIELDS);
    if (field) { keyInField(event, field); return; }
    if ($("dialog[open]") || (!keysOn && event.key.length === 1)) return;
    const action = ACTIONS[event.key];
    if (action) { event.preventDefault(); action(); }
    else if (PAGE_KEYS.includes(event.key) && press(event.key)) event.preventDefault();
  });

  // In a form that edits in place, Enter saves, Shift+Enter is a new line and Escape restores.
  // The search box keeps its words on Escape, which would empty it, and Down leads to the hits.
  function keyInField(event, field) {
    const form = field.closest("form[data-edit]");
    if (event.key === "Escape") {
      if (field.id === "q") event.preventDefault();
      if (form) { event.preventDefault(); $("[data-cancel]", form)?.click(); } else if (!field.closest("dialog")) field.blur();
    } else if (event.key === "ArrowDown" && field.id === "q") {
      event.preventDefault();
      cursor()?.classList.remove("cursor");
      moveCursor(1);
    } else if (event.key === "Enter" && form && field.matches("textarea") && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      form.requestSubmit();
    }
  }

  document.addEventListener("focusin", (event) => {
    const row = event.target.closest("[data-row]");
    if (row && row !== cursor()) { cursor()?.classList.remove("cursor"); row.classList.add("cursor"); }
  });

  // ---- clicks ----

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button, a");
    if (!event.target.closest("details.switch")) for (const each of $$("details.switch[open]")) each.open = false;
    if (!button) return;
    if (button.dataset.open) $(button.dataset.open)?.showModal();
    if (button.dataset.close !== undefined) close(button);
    if (button.dataset.toggle) {
      const target = $(button.dataset.toggle);
      button.setAttribute("aria-expanded", String(target.classList.toggle("is-open")));
    }
    if (button.dataset.picking !== undefined) {
      button.setAttribute("aria-pressed", String($("#results").classList.toggle("picking")));
    }
    if (button.dataset.copy) copy(button);
    if (button.getAttribute("role") === "tab") selectTab(button);
  });

  function close(button) {
    const dialog = button.closest("dialog");
    if (dialog) dialog.close(); else button.closest(".toast")?.remove();
  }

  async function copy(button) {
    const source = $(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.lastChild.textContent = "Copied";
    } catch {
      button.lastChild.textContent = "Press Ctrl+C";
      getSelection().selectAllChildren(source);
    }
  }

  function selectTab(tab) {
    for (const each of $$("[role=tab]", tab.closest("[role=tablist]"))) {
      const isChosen = each === tab;
      each.setAttribute("aria-selected", String(isChosen));
      each.tabIndex = isChosen ? 0 : -1;
      document.getElementById(each.getAttribute("aria-controls")).hidden = !isChosen;
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.target.getAttribute?.("role") !== "tab" || !["ArrowRight", "ArrowLeft"].includes(event.key)) return;
    const tabs = $$("[role=tab]", event.target.closest("[role=tablist]"));
    const step = event.key === "ArrowRight" ? 1 : tabs.length - 1;
    const next = tabs[(tabs.indexOf(event.target) + step) % tabs.length];
    next.focus();
    next.click();
  });

  // ---- time: the slider snaps to moments, each of which is a page ----

  const stops = (slider) => JSON.parse(slider.dataset.stops);
  document.addEventListener("input", ({ target }) => {
    if (!target.dataset.stops) return;
    const [, title] = stops(target)[target.value];
    target.setAttribute("aria-valuetext", title);
    $("[data-moment]", target.form).textContent = title;
  });
  document.addEventListener("change", ({ target }) => {
    if (!target.dataset.stops) return;
    $("#main").setAttribute("aria-busy", "true");
    location.assign(stops(target)[target.value][0]);
  });

  // ---- selection ----

  document.addEventListener("change", () => {
    const label = $("[data-count]");
    if (label) label.textContent = `${$$(".pick input:checked").length} selected`;
  });

  // A download is a whole response, so htmx must not take it.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const button = event.detail.requestConfig.triggeringEvent?.submitter;
    if (!button || button.dataset.plain === undefined) return;
    event.preventDefault();
    const form = button.form;
    const field = Object.assign(document.createElement("input"), { type: "hidden", name: button.name, value: button.value });
    form.append(field);
    form.submit();
    field.remove();
  });

  // The session has ended: the form goes as a whole page, which asks for a login and keeps the text.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const form = event.detail.requestConfig.elt;
    if (event.detail.xhr.status !== 401 || !form.matches("form[method=post]")) return;
    event.preventDefault();
    form.submit();
  });

  // A field that adds something is empty again once it was added.
  document.addEventListener("htmx:afterRequest", (event) => {
    const form = event.target.closest?.("form[data-add]");
    if (form && event.detail.successful) form.reset();
  });

  // What was written and not sent is not lost without a question.
  let sent = null;
  document.addEventListener("submit", ({ target }) => { sent = target; }, true);
  addEventListener("beforeunload", (event) => {
    const drafts = $$("form[data-edit] textarea, form[data-add] [name=text]");
    if (drafts.some((draft) => draft.form !== sent && draft.value.trim() !== draft.defaultValue.trim())) event.preventDefault();
  });

  // ---- dialogs that the server sends, and toasts ----

  let toastTimer = 0;

  function prepare(part) {
    for (const dialog of $$("dialog[data-start]:not([open])", part)) {
      // A page without JavaScript shows the dialog in place; here it floats.
      dialog.removeAttribute("data-start");
      dialog.showModal();
      $("[data-safe]", dialog)?.focus();
    }
    if ($("#toasts .toast")) waitWithToast();
  }

  function waitWithToast() {
    clearTimeout(toastTimer);
    toastTimer = setTimeout(() => {
      const toast = $("#toasts .toast");
      if (toast && (toast.matches(":hover") || toast.contains(document.activeElement))) waitWithToast();
      else toast?.remove();
    }, TOAST_MS);
  }

  // The cursor stays where it was when the row under it is replaced.
  let isRowReplaced = false;
  document.addEventListener("htmx:beforeSwap", (event) => {
    isRowReplaced = event.detail.shouldSwap && Boolean(event.detail.target?.matches?.("[data-row]"));
  });

  document.addEventListener("htmx:load", (event) => {
    const part = event.detail.elt;
    prepare(part.parentNode || document);
    if (isRowReplaced && part.matches("[data-row]:not(.edit)")) placeCursor(part);
    isRowReplaced = isRowReplaced && !part.matches("[data-row]");
  });

  const setting = $("#single-keys");
  if (setting) {
    setting.checked = keysOn;
    setting.addEventListener("change", () => {
      keysOn = setting.checked;
      try { localStorage.setItem(KEYS_SETTING, keysOn ? "on" : "off"); } catch { /* refused */ }
    });
  }
  prepare(document);
  $(".qi[aria-current]")?.scrollIntoView({ block: "nearest" });
})();
