// Drop files and folders on the import page, and show how much was sent. The form works without it.
(() => {
  "use strict";
  const form = document.getElementById("drop");
  if (!form) return;
  const status = document.getElementById("sending");
  const [files, folder] = form.querySelectorAll("input[type=file]");
  for (const each of form.querySelectorAll(".only-script")) each.hidden = false;
  // A file that was chosen before this script ran is sent by the button.
  form.querySelector("button[type=submit]").hidden = !files.files.length;

  // Returns the files below an entry that was dropped, each with its path.
  async function walk(entry) {
    if (entry.isFile) return [[entry.fullPath.slice(1), await new Promise((done, fail) => entry.file(done, fail))]];
    const reader = entry.createReader();
    const found = [];
    for (;;) {
      const batch = await new Promise((done, fail) => reader.readEntries(done, fail));
      if (!batch.length) return found;
      for (const each of batch) found.push(...await walk(each));
    }
  }

  function send(named) {
    if (!named.length) return;
    const total = named.reduce((sum, [, file]) => sum + file.size, 0);
    if (total > Number(form.dataset.maxBytes)) { status.textContent = "This is too large to upload; use polymnia import."; return; }
    const data = new FormData();
    for (const each of form.querySelectorAll("input[type=hidden]")) data.append(each.name, each.value);
    for (const [name, file] of named) data.append("file", file, name);
    const request = new XMLHttpRequest();
    request.open("POST", form.action);
    request.setRequestHeader("HX-Request", "true");
    request.upload.onprogress = (event) => { status.textContent = `Sent ${Math.round(100 * event.loaded / event.total)} %`; };
    request.onerror = () => { status.textContent = "The upload failed. Try again."; };
    request.onload = () => {
      const next = request.getResponseHeader("HX-Redirect");
      if (next) location.assign(next);
      else status.textContent = textOf(request);
    };
    status.textContent = "Sending…";
    request.send(data);
  }

  function textOf(request) {
    try { return JSON.parse(request.responseText).error.message; } catch { /* a page */ }
    return new DOMParser().parseFromString(request.responseText, "text/html").body.textContent.trim();
  }

  const named = (list) => [...list].map((file) => [file.webkitRelativePath || file.name, file]);
  files.addEventListener("change", () => send(named(files.files)));
  folder.addEventListener("change", () => send(named(folder.files)));
  form.addEventListener("dragover", (event) => { event.preventDefault(); form.classList.add("over"); });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", async (event) => {
    event.preventDefault();
    form.classList.remove("over");
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    const found = [];
    for (const each of entries) found.push(...await walk(each));
    send(found);
  });
})();
