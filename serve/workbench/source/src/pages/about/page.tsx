/** What the workbench is made of: its version, and the licences of the packages in it. */
import { useEffect, useState } from "preact/hooks";
import { config } from "../../api/session";
import { Fault, Loading } from "../../ui/states";

interface Licence { name: string; version: string; license: string; address: string; text: string }

export default function AboutPage() {
  const [found, setFound] = useState<Licence[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const file = document.querySelector<HTMLMetaElement>('meta[name="licences"]')!.content;
    fetch(file, { credentials: "omit" }).then((answer) => answer.json()).then(setFound, setError);
  }, []);
  return (
    <div class="page">
      <div class="title"><div class="grow"><h1>About</h1><p>graphdb {config.value?.version}. Everything that this page loads comes from the service itself.</p></div></div>
      <section class="card">
        <header><h2>Packages and their licences</h2></header>
        {error ? <div class="body"><Fault error={error} /></div> : found === null ? <Loading /> : (
          <div class="table-wrap">
            <table class="table">
              <thead><tr><th>Package</th><th>Version</th><th>Licence</th></tr></thead>
              <tbody>
                {found.map((one) => (
                  <tr key={one.name}>
                    <td><b>{one.name}</b><div class="muted small">{one.address}</div></td>
                    <td class="mono">{one.version}</td>
                    <td><details><summary>{one.license}</summary><pre class="small muted licence">{one.text}</pre></details></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      <section class="card"><header><h2>Data</h2></header>
        <div class="body">The outline of the land on maps is that of <b>Natural Earth</b> (1:110m), which is in the public domain.</div>
      </section>
    </div>
  );
}
