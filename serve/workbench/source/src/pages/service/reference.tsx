import { Framed } from "./framed";

export default function ReferencePage() { return <Framed title="API reference" address="/docs" />; }
