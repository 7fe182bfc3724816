// Delay in ms between a change of the document and the callback; one script run changes the
// document many times.
const SOON = 400;

const looks: (() => void)[] = [];
let soon: ReturnType<typeof setTimeout> | undefined;

// Call `look` now and shortly after each change of the document.
export function watchDocument(look: () => void) {
  looks.push(look);
  look();
}

new MutationObserver(() => {
  soon ??= setTimeout(() => {
    soon = undefined;
    for (const look of looks) look();
  }, SOON);
}).observe(document.documentElement, { childList: true, characterData: true, subtree: true });
