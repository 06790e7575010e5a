// Marks the section in view in the navigation.
const links = new Map(
  [...document.querySelectorAll('nav.sections a')].map((link) => [link.hash.slice(1), link]),
);
const sections = [document.querySelector('main > header'), ...document.querySelectorAll('main > section')];

function markCurrent() {
  const line = window.innerHeight * 0.3;
  const atEnd = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 2;
  const passed = sections.filter((section) => section.getBoundingClientRect().top <= line);
  const current = atEnd && window.scrollY > 0 ? sections.at(-1) : (passed.at(-1) ?? sections[0]);
  for (const [id, link] of links) {
    const isCurrent = id === (current.id || 'top');
    if (isCurrent === link.hasAttribute('aria-current')) continue;
    link.toggleAttribute('aria-current', isCurrent);
    // Keeps the mark in sight where the navigation is one scrolling line, without moving the page.
    const bar = link.closest('ul');
    if (isCurrent) bar.scrollLeft = link.offsetLeft - bar.offsetLeft - 24;
  }
}

/** A section that is folded opens when a link leads to it. */
function openTarget() {
  const folded = document.getElementById(location.hash.slice(1))?.querySelector(':scope > details');
  if (folded) folded.open = true;
}

addEventListener('hashchange', openTarget);
openTarget();

let isWaiting = false;
addEventListener(
  'scroll',
  () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      markCurrent();
    });
  },
  { passive: true },
);
addEventListener('resize', markCurrent);
markCurrent();
