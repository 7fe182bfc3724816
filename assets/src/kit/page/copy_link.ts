// Button next to the title of every page that copies the address, which holds the state of the
// page.
import { watchDocument } from "./settled.ts";

const LOOPBACK = /^(localhost|127\.|\[::1\])/;
const OF_A_RUN = /[?&](run|runs|other|like)=/;
const READ = 8000; // ms for which the confirmation is shown

const button = document.createElement("button"),
  answer = document.createElement("span"),
  box = document.createElement("span");
box.className = "copy-link";
button.type = "button";
button.textContent = "Copy link";
button.title = "Copy a link that opens this page with the current settings";
answer.setAttribute("role", "status");
box.append(button, answer);
let gone: ReturnType<typeof setTimeout> | undefined;

button.addEventListener("click", () => {
  dispatchEvent(new Event("dml-link")); // players write the step they show into the address
  void copy(link());
});

// Return the address without the access token, which is personal.
function link() {
  const address = new URL(location.href);
  address.searchParams.delete("token");
  return address.href;
}

async function copy(address: string) {
  clearTimeout(gone);
  if (!(await copied(address))) {
    const field = document.createElement("input");
    field.readOnly = true;
    field.value = address;
    field.setAttribute("aria-label", "The link");
    answer.replaceChildren("The browser blocked copying. Copy the link here: ", field);
    field.select();
    return;
  }
  answer.textContent = `Copied. ${holds(new URL(address))}`;
  gone = setTimeout(() => (answer.textContent = ""), READ);
}

function holds({ search, hostname }: URL) {
  const where = LOOPBACK.test(hostname)
    ? " It works only on this machine."
    : OF_A_RUN.test(search)
      ? " It works only on this server, which stores the run."
      : "";
  return `It opens this page with ${search ? "the current" : "default"} settings.${where}`;
}

// Copy `text` to the clipboard. The clipboard API is available only over https and on localhost;
// the older command needs a selection.
async function copied(text: string) {
  if (navigator.clipboard)
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      // not allowed; try the older command
    }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "said-only";
  box.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  button.focus();
  return done;
}

let at = "";
watchDocument(() => {
  const line = document.querySelector(
    '[data-testid="stMain"] [data-testid="stHeadingWithActionElements"]:has(> h1)',
  );
  if (line && box.parentElement !== line) line.append(box);
  if (location.pathname !== at) answer.textContent = "";
  at = location.pathname;
});
