/** The workbench: its configuration, then the sign-in or the pages. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { begin, config, needsSignIn } from "./api/session";
import { Shell } from "./app/shell";
import "./app/theme";
import SignInPage from "./pages/signin/page";
import { Fault, Loading } from "./ui/states";

function Workbench() {
  const [error, setError] = useState<unknown>(null);
  useEffect(() => { begin().catch(setError); }, []);
  if (error) return <main class="page"><Fault error={error} again={() => location.reload()} /></main>;
  if (config.value === null) return <Loading />;
  return needsSignIn.value ? <SignInPage /> : <Shell />;
}

render(<Workbench />, document.getElementById("app")!);
