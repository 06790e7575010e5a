// The button that switches between light and dark; without it the page follows the system.
const root = document.documentElement;
const KEY = 'roofline-theme';

/** Storage is closed to pages in some private windows: the choice then lasts as long as the page. */
function storage(action) {
  try {
    return action(window.localStorage);
  } catch {
    return null;
  }
}

function isDark() {
  const chosen = root.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

const kept = storage((store) => store.getItem(KEY));
if (kept === 'light' || kept === 'dark') root.dataset.theme = kept;

document.querySelector('button.theme').addEventListener('click', () => {
  root.dataset.theme = isDark() ? 'light' : 'dark';
  storage((store) => store.setItem(KEY, root.dataset.theme));
});
