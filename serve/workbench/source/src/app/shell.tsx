/** The frame around every page: navigation, who is signed in, theme. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentType } from "preact";
import { config, principal, signOut } from "../api/session";
import { Button } from "../ui/controls";
import { Questions, Toasts } from "../ui/dialog";
import { Icon } from "../ui/icons";
import { Fault, Loading } from "../ui/states";
import { PAGES } from "./pages";
import { href, place } from "./router";
import { theme, toggleTheme } from "./theme";

const SEEN = "graphdb.open-note-seen";

export function Brand() {
  return (
    <a class="brand" href="#/query" aria-label="graphdb">
      <span class="mark"><Icon name="graph" /></span><span class="word">graphdb</span>
    </a>
  );
}

export function Shell() {
  const { page } = place.value;
  const entry = PAGES.find((one) => one.id === page);
  useEffect(() => { document.title = `${entry?.title ?? "Not found"} · graphdb`; }, [entry]);
  return (
    <div class="shell">
      <a class="button primary skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>Skip to content</a>
      <header class="side">
        <Brand />
        <nav aria-label="Pages">
          {PAGES.filter((one) => !one.hidden).map((one) => (
            <a key={one.id} class="link" href={href(one.id)} aria-current={one.id === page ? "page" : undefined} aria-label={one.title} title={one.title}>
              <Icon name={one.icon} /><span class="word">{one.title}</span>
            </a>
          ))}
        </nav>
        <div class="foot"><Who /></div>
      </header>
      <main class="main" id="main" tabIndex={-1}>
        <OpenNote />
        {entry ? <Loaded key={entry.id} load={entry.load} /> : <div class="page"><Fault error={new Error(`There is no page “${page}”.`)} /></div>}
      </main>
      <Questions />
      <Toasts />
    </div>
  );
}

function Who() {
  const who = principal.value;
  const required = config.value?.authentication.required;
  return (
    <>
      {who && required && (
        <div class="who"><Icon name="user" /><div class="about grow"><div class="name truncate">{who.name}</div><div class="small muted truncate">{who.roles.join(", ") || who.permission}</div></div></div>
      )}
      <div class="tools">
        <Button kind="quiet" icon={theme.value === "dark" ? "sun" : "moon"} title={theme.value === "dark" ? "Light theme" : "Dark theme"} onClick={toggleTheme} />
        <a class="button quiet icon" href="#/about" title="About" aria-label="About"><Icon name="info" /></a>
        {required && <Button kind="quiet" icon="signout" title="Sign out" onClick={signOut} />}
      </div>
    </>
  );
}

/** With authentication off, everybody who reaches the port may do everything: say so. */
function OpenNote() {
  const [seen, setSeen] = useState(sessionStorage.getItem(SEEN) !== null);
  if (seen || config.value?.authentication.required !== false) return null;
  return (
    <div class="open-note" role="note">
      <Icon name="warning" size={14} />
      <span>Authentication is off: everyone who reaches this port can read and change everything. Set <code>[authentication] enabled = true</code> to change that.</span>
      <Button kind="quiet" size="small" icon="close" title="Dismiss" onClick={() => { sessionStorage.setItem(SEEN, "1"); setSeen(true); }} />
    </div>
  );
}

function Loaded({ load }: { load: () => Promise<{ default: ComponentType }> }) {
  const [Page, setPage] = useState<ComponentType | null>(null);
  const [error, setError] = useState<unknown>(null);
  const alive = useRef(true);
  useEffect(() => {
    load().then((module) => { if (alive.current) setPage(() => module.default); }, setError);
    return () => { alive.current = false; };
  }, [load]);
  if (error) return <div class="page"><Fault error={error} again={() => location.reload()} /></div>;
  return Page ? <Page /> : <Loading />;
}
