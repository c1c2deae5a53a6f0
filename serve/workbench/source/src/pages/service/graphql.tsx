import { theme } from "../../app/theme";
import { Framed } from "./framed";

export default function GraphQLPage() {
  localStorage.setItem("graphiql:theme", theme.value); // where GraphiQL keeps its own
  return <Framed key={theme.value} title="GraphiQL" address="/graphql" />;
}
