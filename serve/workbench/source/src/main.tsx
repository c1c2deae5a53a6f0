/** The workbench: its configuration, then the sign-in or the pages. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { finishSignIn, hasComeBack } from "./api/oidc";
import { begin, config, needsSignIn, signInFault } from "./api/session";
import { Shell } from "./app/shell";
import "./app/theme";
import SignInPage from "./pages/signin/page";
import { Fault, Loading } from "./ui/states";

function Workbench() {
  const [error, setError] = useState<unknown>(null);
  useEffect(() => { start().catch(setError); }, []);
  if (error) return <main class="page"><Fault error={error} again={() => location.reload()} /></main>;
  if (config.value === null) return <Loading />;
  return needsSignIn.value ? <SignInPage /> : <Shell />;
}

async function start(): Promise<void> {
  if (hasComeBack()) await finishSignIn().catch((failure) => { signInFault.value = failure; });
  await begin();
}

render(<Workbench />, document.getElementById("app")!);
