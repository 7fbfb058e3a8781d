import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.util.List;
import javax.xml.parsers.DocumentBuilderFactory;
import org.apache.cxf.wsn.client.Consumer;
import org.apache.cxf.wsn.client.CreatePullPoint;
import org.apache.cxf.wsn.client.NotificationBroker;
import org.apache.cxf.wsn.client.PullPoint;
import org.apache.cxf.wsn.client.Publisher;
import org.apache.cxf.wsn.client.Registration;
import org.apache.cxf.wsn.client.Subscription;
import org.oasis_open.docs.wsn.b_2.NotificationMessageHolderType;
import org.oasis_open.docs.wsrf.rw_2.ResourceUnknownFault;
import org.w3c.dom.Element;
import org.xml.sax.InputSource;

/** Apache CXF's classes for clients at a broker: each line of the standard input is a step, and each line of the output tells what came of it. */
public final class CXFClient {
    public static void main(String[] args) throws Exception {
        String broker = args[0];
        String own = args[1];
        NotificationBroker notifications = new NotificationBroker(broker + "/wsn/NotificationBroker");
        Consumer consumer = new Consumer(m -> say("consumed", m), own + "/consumer");
        Subscription subscription = notifications.subscribe(consumer, "PRT/x/location");
        PullPoint pullPoint = new CreatePullPoint(broker + "/wsn/CreatePullPoint").create();
        notifications.subscribe(pullPoint, "*//location");
        System.out.println("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String step = in.readLine(); step != null; step = in.readLine()) {
            switch (step) {
            case "notify":
                notifications.notify("PRT/java", element("<track xmlns=\"urn:n\"><id>from java</id></track>"));
                break;
            case "pull":
                for (NotificationMessageHolderType m : pullPoint.getMessages(10)) {
                    say("pulled", m);
                }
                break;
            case "current":
                List<Object> current = notifications.getCurrentMessage("PRT/x/location");
                System.out.println("current " + ((Element) current.get(0)).getTextContent());
                break;
            case "register":
                Publisher publisher = new Publisher(null, own + "/publisher");
                Registration registration = notifications.registerPublisher(publisher, "PRT/java");
                registration.destroy();
                try {
                    registration.destroy();
                } catch (ResourceUnknownFault fault) {
                    System.out.println("unknown registration: " + fault.getMessage());
                }
                publisher.stop();
                break;
            case "pause":
                subscription.pause();
                break;
            case "resume":
                subscription.resume();
                subscription.renew("PT60S");
                break;
            default:
                subscription.unsubscribe();
                pullPoint.destroy();
                try {
                    subscription.unsubscribe();
                } catch (ResourceUnknownFault fault) {
                    System.out.println("unknown subscription: " + fault.getMessage());
                }
                System.out.println("end");
                System.exit(0);
            }
            System.out.println("done " + step);
        }
    }

    private static Element element(String text) throws Exception {
        DocumentBuilderFactory factory = DocumentBuilderFactory.newInstance();
        factory.setNamespaceAware(true);
        return factory.newDocumentBuilder().parse(new InputSource(new StringReader(text))).getDocumentElement();
    }

    private static void say(String what, NotificationMessageHolderType m) {
        Element content = (Element) m.getMessage().getAny();
        System.out.println(what + " " + m.getTopic().getContent().get(0) + " {" + content.getNamespaceURI() + "}" + content.getLocalName() + " " + content.getTextContent());
    }
}
