/** The sign-in: one form for each way that the service has. */
import { useState } from "preact/hooks";
import { Brand } from "../../app/shell";
import { beginSignIn } from "../../api/oidc";
import { config, signIn, signInFault } from "../../api/session";
import { Button, Field, Input, Tabs, type TabItem } from "../../ui/controls";
import { Fault } from "../../ui/states";

export default function SignInPage() {
  const ways = config.value!.authentication;
  const items = [
    ways.password && { id: "password", text: "Password" },
    ways.api_key && { id: "key", text: "API key" },
    ways.token && { id: "token", text: "Token" },
  ].filter((one): one is TabItem => !!one);
  const [way, setWay] = useState(items[0]?.id ?? "");
  const [error, setError] = useState<unknown>(signInFault.value);
  const [busy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const text = (name: string) => String(form.get(name) ?? "");
    setBusy(true);
    setError(null);
    try {
      await signIn(way === "password" ? { kind: "password", user: text("user"), password: text("password") }
        : way === "key" ? { kind: "key", key: text("key") } : { kind: "token", token: text("token") });
    } catch (failure) { setError(failure); } finally { setBusy(false); }
  };
  return (
    <main class="welcome">
      <div class="card">
        <Brand />
        <div><h1>Sign in</h1><p class="muted">The service needs to know who you are.</p></div>
        {ways.oidc && <Button kind="primary" icon="user" onClick={() => { beginSignIn().catch(setError); }}>Sign in with your provider</Button>}
        {ways.oidc && items.length > 0 && <div class="or">or</div>}
        {error !== null && items.length === 0 && <Fault error={error} />}
        {items.length > 1 && <Tabs label="Way to sign in" look="segments" items={items} value={way} onPick={(id) => { setWay(id); setError(null); }} />}
        {items.length > 0 && (
          <form key={way} onSubmit={submit}>
            {way === "password" && <>
              <Field label="User name">{(id) => <Input id={id} name="user" required autocomplete="username" />}</Field>
              <Field label="Password">{(id) => <Input id={id} name="password" type="password" required autocomplete="current-password" />}</Field>
            </>}
            {way === "key" && <Field label="API key" hint="Begins with gdb_">{(id) => <Input id={id} name="key" type="password" required />}</Field>}
            {way === "token" && <Field label="Token" hint="A JSON Web Token">{(id) => <Input id={id} name="token" type="password" required />}</Field>}
            {error !== null && <Fault error={error} />}
            <Button kind={ways.oidc ? "plain" : "primary"} type="submit" disabled={busy}>{busy ? "Signing in …" : "Sign in"}</Button>
          </form>
        )}
      </div>
    </main>
  );
}
